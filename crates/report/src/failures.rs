//! Short list of failures and errors.

use bakeoff_core::{
    CaseId, CaseIds, CheckResult, Status, Summary, TargetName, TargetSummary, TrialResult, Verdict,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Indentation of further lines of an entry.
const INDENT: &str = "        ";

/// Collects failures and errors of finished trials in bounded memory.
///
/// The reported failures do not depend on the order in which trials finish. Of the errors, the first distinct
/// messages are reported.
#[derive(Debug)]
pub struct Failures {
    max_entries: usize,
    /// Ids of the cases, in the suite's order.
    cases: Arc<CaseIds>,
    /// Failures of each target.
    targets: HashMap<TargetName, TargetFailures>,
    /// Number of trials by target and error message.
    errors: BTreeMap<(TargetName, String), u64>,
    /// Number of trials with truncated output, by target.
    truncated: BTreeMap<TargetName, u64>,
}

/// Failures of one target.
#[derive(Debug, Default)]
struct TargetFailures {
    /// First cases with failures, in the suite's order.
    first: BTreeMap<(usize, CaseId), CaseFailures>,
    /// Number of failed trials.
    failed: u64,
}

/// Failures of one case.
#[derive(Debug)]
struct CaseFailures {
    count: u64,
    trial: u32,
    /// Reasons of the first failed trial.
    reasons: Vec<String>,
}

impl Failures {
    /// Creates a collector that reports at most `max_entries` cases and error messages. `cases` has the
    /// suite's order.
    pub fn new(max_entries: usize, cases: Arc<CaseIds>) -> Failures {
        Failures {
            max_entries,
            cases,
            targets: HashMap::new(),
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
                let case = &result.key.case;
                let position = self.cases.position(case.as_str()).unwrap_or(usize::MAX);
                let target = self.targets.entry(result.key.target.clone()).or_default();
                target.add((position, case.clone()), result, self.max_entries);
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

    /// Returns the entries of the report, some of several lines; empty without failures and errors. Failures
    /// of the targets that decided the verdict come first, then those of other gating targets, then the rest.
    pub fn entries(&self, summary: &Summary) -> Vec<String> {
        let mut targets: Vec<&TargetSummary> = summary.targets.iter().collect();
        targets.sort_by_key(|target| {
            let decided = target.verdict == summary.verdict && summary.verdict != Verdict::Passed;
            (!target.gate, !decided)
        });
        let known =
            targets.iter().filter_map(|target| Some((*target, self.targets.get(&target.target)?)));
        let all = known.clone().flat_map(|(target, failures)| {
            failures.first.iter().map(move |((_, case), failed)| (target, case, failed))
        });
        let shown: Vec<_> = all.take(self.max_entries).collect();
        let failed = shown.iter().map(|(target, case, failed)| describe(target, case, failed));
        let omitted = known.map(|(_, failures)| failures.failed).sum::<u64>()
            - shown.iter().map(|(.., failed)| failed.count).sum::<u64>();
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

impl TargetFailures {
    fn add(&mut self, key: (usize, CaseId), result: &TrialResult, max_entries: usize) {
        self.failed += 1;
        let trial = result.key.trial;
        if let Some(known) = self.first.get_mut(&key) {
            known.count += 1;
            if trial < known.trial {
                *known = CaseFailures { trial, reasons: reasons(result), ..*known };
            }
            return;
        }
        let is_first = self.first.last_key_value().is_none_or(|(last, _)| key < *last);
        if is_first || self.first.len() < max_entries {
            self.first.insert(key, CaseFailures { count: 1, trial, reasons: reasons(result) });
        }
        if self.first.len() > max_entries {
            self.first.pop_last();
        }
    }
}

/// Formats the failures of a case: the first reason next to its name, further ones below it.
fn describe(target: &TargetSummary, case: &CaseId, failed: &CaseFailures) -> String {
    let trials = match failed.count {
        1 => format!("trial {}", failed.trial),
        count => format!("{count} trials"),
    };
    let gate = if target.gate { "" } else { ", no gate" };
    let (name, case) = (plain(target.target.as_str()), plain(case.as_str()));
    let reasons: Vec<String> = failed.reasons.iter().map(|reason| plain(reason)).collect();
    format!("failed  {name} / {case} ({trials}{gate}): {}", reasons.join(&format!("\n{INDENT}")))
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

/// Returns the reason of a failed trial on one line.
pub(crate) fn reason(result: &TrialResult) -> String {
    reasons(result).join("; ")
}

/// Returns all failed checks of a trial, in the suite's order, or the exit code of a program without checks.
fn reasons(result: &TrialResult) -> Vec<String> {
    let attempt = &result.attempt;
    let describe = |check: &CheckResult| {
        let optional = if check.required { "" } else { " (not required)" };
        format!("{}{optional}: {}", check.check, check.message)
    };
    let failed = result.checks.iter().filter(|check| !check.passed);
    let mut reasons: Vec<String> = failed.map(describe).collect();
    if reasons.is_empty() {
        reasons.push(match attempt.exit_code {
            Some(code) => format!("exit code {code}"),
            None => "failed".to_owned(),
        });
    }
    if let (true, Some(first)) = (attempt.is_out_of_turns, reasons.first_mut()) {
        let turns = attempt.turns.unwrap_or_default();
        *first = format!("out of turns ({turns}); {first}");
    }
    // The last line of standard error usually has the cause.
    let last_line = attempt.stderr.lines().rfind(|line| !line.trim().is_empty());
    if let (Some(1..), Some(line), Some(last)) = (attempt.exit_code, last_line, reasons.last_mut())
    {
        const MAX_STDERR_CHARS: usize = 120;
        last.push_str(&format!(
            "; stderr: {}",
            plain(line).chars().take(MAX_STDERR_CHARS).collect::<String>()
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{summary, target};
    use bakeoff_core::{Attempt, ErrorKind, TrialError, TrialKey};

    fn check(id: &str, required: bool, message: &str) -> CheckResult {
        CheckResult {
            check: id.to_owned(),
            passed: false,
            score: 0.0,
            graded: false,
            required,
            weight: 1.0,
            message: message.to_owned(),
        }
    }

    fn result(target: &str, case: &str, status: Status, message: &str) -> TrialResult {
        let error = (status == Status::Error)
            .then(|| TrialError { kind: ErrorKind::Transient, message: message.to_owned() });
        TrialResult {
            key: TrialKey { target: target.into(), case: case.into(), trial: 1 },
            tags: Vec::new(),
            status,
            score: None,
            checks: vec![check("contains", true, message)],
            attempt: Attempt { error, ..Attempt::default() },
        }
    }

    fn failures(max_entries: usize, cases: &[&str]) -> Failures {
        Failures::new(max_entries, Arc::new(cases.iter().copied().collect()))
    }

    #[test]
    fn failures_are_limited_and_equal_errors_share_a_line() {
        let mut failures = failures(1, &["a", "b", "c", "d"]);
        failures.add(&result("small", "b", Status::Failed, "got Oslo"));
        for (trial, city) in [(3, "Bonn"), (1, "Rome"), (2, "Nice")] {
            let mut again = result("small", "a", Status::Failed, &format!("got {city}"));
            again.key.trial = trial;
            failures.add(&again);
        }
        let mut long = result("small", "c", Status::Passed, "");
        long.attempt.dropped_bytes = 7;
        failures.add(&long);
        for message in ["503:\nbusy", "503: busy", "reset 1", "reset 2"] {
            failures.add(&result("small", "d", Status::Error, message));
        }
        assert_eq!(
            failures.entries(&summary(vec![target("small", Verdict::Failed)])),
            [
                "failed  small / a (3 trials): contains: got Rome",
                "… and 1 failed trials of other cases",
                "error   small: 503: busy (2 times)",
                "error   small: other errors (2 times)",
                "cut     small: 1 trial exceeded the output limit (1 MiB per output)",
            ]
        );
    }

    #[test]
    fn reason_of_a_program_without_checks_is_its_exit_code() {
        let mut program = result("small", "e", Status::Failed, "");
        program.checks.clear();
        program.attempt.exit_code = Some(2);
        program.attempt.stderr = "Traceback\nTypeError: no\n\n".to_owned();
        assert_eq!(reason(&program), "exit code 2; stderr: TypeError: no");
    }

    #[test]
    fn failures_that_decided_the_verdict_come_first_in_the_order_of_the_suite() {
        // Ids that sort differently from their order in the suite.
        let mut failures = failures(3, &["z", "y", "x"]);
        for case in ["x", "y", "z"] {
            failures.add(&result("a-trial-balloon", case, Status::Failed, "no"));
        }
        for (name, case) in [("lenient", "x"), ("strict", "x"), ("strict", "z")] {
            failures.add(&result(name, case, Status::Failed, "no"));
        }
        let mut balloon = target("a-trial-balloon", Verdict::Failed);
        balloon.gate = false;
        let targets =
            vec![balloon, target("lenient", Verdict::Passed), target("strict", Verdict::Failed)];
        assert_eq!(
            failures.entries(&summary(targets)),
            [
                "failed  strict / z (trial 1): contains: no",
                "failed  strict / x (trial 1): contains: no",
                "failed  lenient / x (trial 1): contains: no",
                "… and 3 failed trials of other cases",
            ]
        );
    }

    #[test]
    fn all_failed_checks_of_a_trial_are_listed() {
        let mut failures = failures(3, &["a"]);
        let mut trial = result("small", "a", Status::Failed, "no Paris");
        trial.checks.push(CheckResult { passed: true, ..check("fine", true, "") });
        trial.checks.push(check("length", true, "40 characters,\nexpected at most 20"));
        trial.checks.push(check("polite", false, "score 0.2"));
        failures.add(&trial);
        let mut small = target("small", Verdict::Failed);
        small.gate = false;
        assert_eq!(
            failures.entries(&summary(vec![small])),
            ["failed  small / a (trial 1, no gate): contains: no Paris\n        \
              length: 40 characters, expected at most 20\n        \
              polite (not required): score 0.2"]
        );
    }
}
