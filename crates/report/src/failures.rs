//! What went wrong, in a few lines.

use bakeoff_core::{CaseId, Status, TargetName, TrialResult};
use std::collections::BTreeMap;

/// Longest reason on one line, in characters.
const LONGEST: usize = 300;

/// Collects failures as trials end, without holding all of them.
///
/// Which failures are shown does not depend on the order in which they ended; of errors the first
/// different ones are.
#[derive(Debug)]
pub struct Failures {
    most: usize,
    /// The first of all cases with failures, in the order of target and case.
    first: BTreeMap<(TargetName, CaseId), Failed>,
    /// Trials that failed.
    failed: u64,
    /// Errors with the same message are one line, however many trials had them.
    errors: BTreeMap<(TargetName, String), u64>,
    /// Trials whose output was longer than what is kept, by target.
    cut: BTreeMap<TargetName, u64>,
}

/// The failures of one case.
#[derive(Debug)]
struct Failed {
    count: u64,
    trial: u32,
    /// Of the first of its trials that failed.
    reason: String,
}

impl Failures {
    /// Keeps at most so many.
    pub fn new(most: usize) -> Failures {
        Failures {
            most,
            first: BTreeMap::new(),
            failed: 0,
            errors: BTreeMap::new(),
            cut: BTreeMap::new(),
        }
    }

    /// Looks at a trial that ended.
    pub fn add(&mut self, result: &TrialResult) {
        if result.attempt.dropped_bytes > 0 {
            *self.cut.entry(result.key.target.clone()).or_default() += 1;
        }
        match (result.status, &result.attempt.error) {
            (Status::Failed, _) => {
                self.failed += 1;
                let key = (result.key.target.clone(), result.key.case.clone());
                let trial = result.key.trial;
                if let Some(known) = self.first.get_mut(&key) {
                    known.count += 1;
                    if trial < known.trial {
                        *known = Failed { trial, reason: reason(result), ..*known };
                    }
                    return;
                }
                let is_first = self.first.last_key_value().is_none_or(|(last, _)| key < *last);
                if is_first || self.first.len() < self.most {
                    self.first.insert(key, Failed { count: 1, trial, reason: reason(result) });
                }
                if self.first.len() > self.most {
                    self.first.pop_last();
                }
            }
            (Status::Error, Some(error)) => {
                let mut key = (result.key.target.clone(), plain(&error.message));
                // A message that is different every time must not fill the memory.
                if self.errors.len() >= self.most && !self.errors.contains_key(&key) {
                    key.1 = "other errors".to_owned();
                }
                *self.errors.entry(key).or_default() += 1;
            }
            _ => {}
        }
    }

    /// The lines to show; none when nothing went wrong.
    pub fn lines(&self) -> Vec<String> {
        let failed = self.first.iter().map(|((target, case), failed)| {
            let trials = match failed.count {
                1 => format!("trial {}", failed.trial),
                count => format!("{count} trials"),
            };
            let (target, case) = (plain(target.as_str()), plain(case.as_str()));
            format!("failed  {target} / {case} ({trials}): {}", plain(&failed.reason))
        });
        let left_out = self.failed - self.first.values().map(|failed| failed.count).sum::<u64>();
        let more =
            (left_out > 0).then(|| format!("… and {left_out} trials of other cases that failed"));
        let errors = self.errors.iter().map(|((target, message), count)| {
            let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
            format!("error   {}: {message} ({times})", plain(target.as_str()))
        });
        let cut = self.cut.iter().map(|(target, count)| {
            let trials = if *count == 1 { "trial" } else { "trials" };
            let target = plain(target.as_str());
            format!(
                "cut     {target}: {count} {trials} wrote more than is kept (1 MiB of each output)"
            )
        });
        failed.chain(more).chain(errors).chain(cut).collect()
    }
}

/// On one line that is not too long, without what would confuse a terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut shown: String =
        text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// Why a trial failed.
pub(crate) fn reason(result: &TrialResult) -> String {
    let attempt = &result.attempt;
    let failed = result.checks.iter().find(|check| check.required && !check.passed);
    let mut reason = match (failed, attempt.exit_code) {
        (Some(check), _) => format!("{}: {}", check.check, check.message),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "failed".to_owned(),
    };
    // A program that failed has usually said why.
    let last_words = attempt.stderr.lines().rfind(|line| !line.trim().is_empty());
    if let (Some(1..), Some(words)) = (attempt.exit_code, last_words) {
        const MOST: usize = 120;
        reason.push_str(&format!(
            "; it said: {}",
            plain(words).chars().take(MOST).collect::<String>()
        ));
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_core::{Attempt, CheckResult, ErrorKind, TrialError, TrialKey};

    fn result(case: &str, status: Status, message: &str) -> TrialResult {
        let check = CheckResult {
            check: "contains".to_owned(),
            passed: false,
            required: true,
            weight: 1.0,
            message: message.to_owned(),
        };
        let error = (status == Status::Error)
            .then(|| TrialError { kind: ErrorKind::Transient, message: message.to_owned() });
        TrialResult {
            key: TrialKey { target: "small".into(), case: case.into(), trial: 1 },
            status,
            score: None,
            checks: vec![check],
            attempt: Attempt { error, ..Attempt::default() },
        }
    }

    #[test]
    fn failures_are_cut_and_equal_errors_are_one_line() {
        let mut failures = Failures::new(1);
        failures.add(&result("b", Status::Failed, "got Oslo"));
        for (trial, city) in [(3, "Bonn"), (1, "Rome"), (2, "Nice")] {
            let mut again = result("a", Status::Failed, &format!("got {city}"));
            again.key.trial = trial;
            failures.add(&again);
        }
        let mut long = result("c", Status::Passed, "");
        long.attempt.dropped_bytes = 7;
        failures.add(&long);
        for message in ["503:\nbusy", "503: busy", "reset 1", "reset 2"] {
            failures.add(&result("d", Status::Error, message));
        }
        let mut program = result("e", Status::Failed, "");
        program.checks.clear();
        program.attempt.exit_code = Some(2);
        program.attempt.stderr = "Traceback\nTypeError: no\n\n".to_owned();
        assert_eq!(reason(&program), "exit code 2; it said: TypeError: no");
        assert_eq!(
            failures.lines(),
            [
                "failed  small / a (3 trials): contains: got Rome",
                "… and 1 trials of other cases that failed",
                "error   small: 503: busy (2 times)",
                "error   small: other errors (2 times)",
                "cut     small: 1 trial wrote more than is kept (1 MiB of each output)",
            ]
        );
    }
}
