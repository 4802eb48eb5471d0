//! Short list of failures and errors.

use bakeoff_core::{CaseId, Status, TargetName, TrialResult};
use std::collections::BTreeMap;

/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Collects failures and errors of finished trials in bounded memory.
///
/// The reported failures do not depend on the order in which trials finish. Of the errors, the first distinct
/// messages are reported.
#[derive(Debug)]
pub struct Failures {
    max_entries: usize,
    /// First cases with failures, ordered by target and case.
    first: BTreeMap<(TargetName, CaseId), CaseFailures>,
    /// Number of failed trials.
    failed: u64,
    /// Number of trials by target and error message.
    errors: BTreeMap<(TargetName, String), u64>,
    /// Number of trials with truncated output, by target.
    truncated: BTreeMap<TargetName, u64>,
}

/// Failures of one case.
#[derive(Debug)]
struct CaseFailures {
    count: u64,
    trial: u32,
    /// Reason of the first failed trial.
    reason: String,
}

impl Failures {
    /// Creates a collector with at most `max_entries` cases and error messages.
    pub fn new(max_entries: usize) -> Failures {
        Failures {
            max_entries,
            first: BTreeMap::new(),
            failed: 0,
            errors: BTreeMap::new(),
            truncated: BTreeMap::new(),
        }
    }

    /// Adds the result of a trial.
    pub fn add(&mut self, result: &TrialResult) {
        if result.attempt.dropped_bytes > 0 {
            *self.truncated.entry(result.key.target.clone()).or_default() += 1;
        }
        match (result.status, &result.attempt.error) {
            (Status::Failed, _) => {
                self.failed += 1;
                let key = (result.key.target.clone(), result.key.case.clone());
                let trial = result.key.trial;
                if let Some(known) = self.first.get_mut(&key) {
                    known.count += 1;
                    if trial < known.trial {
                        *known = CaseFailures { trial, reason: reason(result), ..*known };
                    }
                    return;
                }
                let is_first = self.first.last_key_value().is_none_or(|(last, _)| key < *last);
                if is_first || self.first.len() < self.max_entries {
                    self.first
                        .insert(key, CaseFailures { count: 1, trial, reason: reason(result) });
                }
                if self.first.len() > self.max_entries {
                    self.first.pop_last();
                }
            }
            (Status::Error, Some(error)) => {
                let mut key = (result.key.target.clone(), plain(&error.message));
                // Bounds the memory when every message is different.
                if self.errors.len() >= self.max_entries && !self.errors.contains_key(&key) {
                    key.1 = "other errors".to_owned();
                }
                *self.errors.entry(key).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Returns the report lines; empty without failures and errors.
    pub fn lines(&self) -> Vec<String> {
        let failed = self.first.iter().map(|((target, case), failed)| {
            let trials = match failed.count {
                1 => format!("trial {}", failed.trial),
                count => format!("{count} trials"),
            };
            let (target, case) = (plain(target.as_str()), plain(case.as_str()));
            format!("failed  {target} / {case} ({trials}): {}", plain(&failed.reason))
        });
        let omitted = self.failed - self.first.values().map(|failed| failed.count).sum::<u64>();
        let more = (omitted > 0).then(|| format!("… and {omitted} failed trials of other cases"));
        let errors = self.errors.iter().map(|((target, message), count)| {
            let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
            format!("error   {}: {message} ({times})", plain(target.as_str()))
        });
        let truncated = self.truncated.iter().map(|(target, count)| {
            let trials = if *count == 1 { "trial" } else { "trials" };
            let target = plain(target.as_str());
            format!(
                "cut     {target}: {count} {trials} exceeded the output limit (1 MiB per output)"
            )
        });
        failed.chain(more).chain(errors).chain(truncated).collect()
    }
}

/// Returns the text as one line of limited length without control characters.
pub(crate) fn plain(text: &str) -> String {
    let mut line: String =
        text.chars().take(MAX_REASON_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MAX_REASON_CHARS).is_some() {
        line.push('…');
    }
    line
}

/// Returns the reason of a failed trial.
pub(crate) fn reason(result: &TrialResult) -> String {
    let attempt = &result.attempt;
    let failed = result.checks.iter().find(|check| check.required && !check.passed);
    let mut reason = match (failed, attempt.exit_code) {
        (Some(check), _) => format!("{}: {}", check.check, check.message),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "failed".to_owned(),
    };
    // The last line of standard error usually has the cause.
    let last_line = attempt.stderr.lines().rfind(|line| !line.trim().is_empty());
    if let (Some(1..), Some(line)) = (attempt.exit_code, last_line) {
        const MAX_STDERR_CHARS: usize = 120;
        reason.push_str(&format!(
            "; stderr: {}",
            plain(line).chars().take(MAX_STDERR_CHARS).collect::<String>()
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
            score: 0.0,
            graded: false,
            required: true,
            weight: 1.0,
            message: message.to_owned(),
        };
        let error = (status == Status::Error)
            .then(|| TrialError { kind: ErrorKind::Transient, message: message.to_owned() });
        TrialResult {
            key: TrialKey { target: "small".into(), case: case.into(), trial: 1 },
            tags: Vec::new(),
            status,
            score: None,
            checks: vec![check],
            attempt: Attempt { error, ..Attempt::default() },
        }
    }

    #[test]
    fn failures_are_limited_and_equal_errors_share_a_line() {
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
        assert_eq!(reason(&program), "exit code 2; stderr: TypeError: no");
        assert_eq!(
            failures.lines(),
            [
                "failed  small / a (3 trials): contains: got Rome",
                "… and 1 failed trials of other cases",
                "error   small: 503: busy (2 times)",
                "error   small: other errors (2 times)",
                "cut     small: 1 trial exceeded the output limit (1 MiB per output)",
            ]
        );
    }
}
