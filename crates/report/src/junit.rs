//! JUnit XML with a test suite per target.

use crate::Error;
use crate::details::{Details, FailedTrial};
use bakeoff_core::{CaseSummary, Status, Summary, TargetSummary, Verdict, printable};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};
use std::io::Write;
use std::time::Duration;

/// What makes a test fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JunitTests {
    /// The verdict of a gating target: the file has a failure or an error exactly if the run did not pass. Each
    /// target has a test `verdict`; cases that did not pass are skipped unless their target did not pass either.
    #[default]
    Gate,
    /// The verdict of a case of a gating target, even if the rule of the target lets the run pass.
    Case,
}

/// Writes a run as JUnit XML.
///
/// A case that passed although some of its trials failed is flaky: its failures become `flakyFailure`
/// elements. A case whose verdict depends on errored trials is an error, not a failure.
pub fn write_junit(
    summary: &Summary,
    details: &Details,
    tests: JunitTests,
    writer: &mut dyn Write,
) -> Result<(), Error> {
    let mut report = Report::new(summary.suite.as_str());
    report.set_time(Duration::from_millis(summary.stats.elapsed_ms));
    let suites = summary.targets.iter().map(|target| suite(summary, target, details, tests));
    report.add_test_suites(suites);
    let text = report.to_string().map_err(|error| Error::Format(error.to_string()))?;
    let written = writer.write_all(printable(&text).as_bytes());
    written.map_err(Error::Write)
}

fn suite(
    summary: &Summary,
    target: &TargetSummary,
    details: &Details,
    tests: JunitTests,
) -> TestSuite {
    let mut suite = TestSuite::new(format!("{}/{}", summary.suite, target.target));
    let mut total = Duration::ZERO;
    // With these, a case that did not pass is no failure.
    let exemption = match target.verdict {
        _ if !target.gate => Some("the target does not gate".to_owned()),
        Verdict::Passed if tests == JunitTests::Gate => {
            Some(format!("the target passed: {}", target.rule))
        }
        _ => None,
    };
    if tests == JunitTests::Gate {
        let mut test = TestCase::new("verdict", verdict_status(target));
        if target.verdict == Verdict::Passed {
            test.set_system_out(format!("passed: {}", target.rule));
        }
        test.set_classname(format!("{}.{}", summary.suite, target.target));
        suite.add_test_case(test);
    }
    for case in target.cases.iter() {
        let found = details.case(&target.target, &case.id);
        let status = case_status(&case, exemption.as_deref(), found.failed_trials.iter());
        let mut test = TestCase::new(case.id.as_str(), status);
        test.set_classname(format!("{}.{}", summary.suite, target.target));
        let time = Duration::from_millis(found.latency_ms);
        total += time;
        test.set_time(time);
        suite.add_test_case(test);
    }
    suite.set_time(total);
    suite
}

/// Returns the status of the verdict of a target.
fn verdict_status(target: &TargetSummary) -> TestCaseStatus {
    let (kind, label) = match target.verdict {
        Verdict::Passed => return TestCaseStatus::success(),
        Verdict::Failed => (NonSuccessKind::Failure, "failed"),
        Verdict::Inconclusive => (NonSuccessKind::Error, "inconclusive"),
    };
    if !target.gate {
        let mut status = TestCaseStatus::skipped();
        status.set_message(format!("{label}: {}; the target does not gate", target.rule));
        return status;
    }
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(label);
    status.set_message(format!("{label}: {}", target.rule));
    status
}

/// Returns the status of a case; with an `exemption`, it is neither a failure nor an error.
fn case_status<'a>(
    case: &CaseSummary,
    exemption: Option<&str>,
    failed_trials: impl Iterator<Item = (&'a u32, &'a FailedTrial)>,
) -> TestCaseStatus {
    let rate = format!("{} of {} trials passed", case.pass_count, case.counted);
    let rate = match case.counted < case.total_trials {
        true => format!("{rate}, {} planned", case.total_trials),
        false => rate,
    };
    let reruns = failed_trials.map(|(number, trial)| rerun(*number, trial));
    match (case.status, exemption) {
        (Status::Passed, _) => {
            let mut status = TestCaseStatus::success();
            status.add_reruns(reruns);
            status
        }
        (Status::Skipped, _) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("no verdict: trials are missing");
            status
        }
        (Status::Failed | Status::Error, Some(exemption)) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("{rate}; {exemption}"));
            status
        }
        (Status::Failed | Status::Error, None) => {
            let (kind, label) = match case.status {
                Status::Failed => (NonSuccessKind::Failure, "failed"),
                _ => (NonSuccessKind::Error, "inconclusive"),
            };
            let mut status = TestCaseStatus::non_success(kind);
            status.set_type(label);
            let reruns: Vec<TestRerun> = reruns.collect();
            let first = reruns.first().and_then(|rerun| rerun.message.clone());
            let first = first.map_or(String::new(), |first| format!(": {}", first.as_str()));
            status.set_message(format!("{rate}{first}"));
            status.add_reruns(reruns);
            status
        }
    }
}

fn rerun(number: u32, trial: &FailedTrial) -> TestRerun {
    let kind = if trial.is_error { NonSuccessKind::Error } else { NonSuccessKind::Failure };
    let mut rerun = TestRerun::new(kind);
    rerun.set_message(format!("trial {number}: {}", trial.reason));
    rerun.set_type(if trial.is_error { "error" } else { "failed" });
    rerun.set_system_out(trial.output.as_str());
    rerun
}
