//! JUnit XML with a test suite per target and a test case per case.

use crate::Error;
use crate::details::{Details, FailedTrial};
use bakeoff_core::{CaseSummary, Status, Summary, TargetSummary};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};
use std::io::Write;
use std::time::Duration;

/// Writes a run as JUnit XML.
///
/// A case that passed although some of its trials failed is flaky: its failures become `flakyFailure`
/// elements. A case whose verdict depends on errored trials is an error, not a failure.
pub fn write_junit(
    summary: &Summary,
    details: &Details,
    writer: &mut dyn Write,
) -> Result<(), Error> {
    let mut report = Report::new(summary.suite.as_str());
    report.set_time(Duration::from_millis(summary.stats.elapsed_ms));
    report.add_test_suites(summary.targets.iter().map(|target| suite(summary, target, details)));
    report.serialize(writer).map_err(|error| Error::Format(error.to_string()))
}

fn suite(summary: &Summary, target: &TargetSummary, details: &Details) -> TestSuite {
    let mut suite = TestSuite::new(format!("{}/{}", summary.suite, target.target));
    let mut total = Duration::ZERO;
    for case in target.cases.iter() {
        let found = details.case(&target.target, &case.id);
        let mut test =
            TestCase::new(case.id.as_str(), status(&case, target.gate, found.failed_trials.iter()));
        test.set_classname(format!("{}.{}", summary.suite, target.target));
        let time = Duration::from_millis(found.latency_ms);
        total += time;
        test.set_time(time);
        suite.add_test_case(test);
    }
    suite.set_time(total);
    suite
}

fn status<'a>(
    case: &CaseSummary,
    gate: bool,
    failed_trials: impl Iterator<Item = (&'a u32, &'a FailedTrial)>,
) -> TestCaseStatus {
    let rate = format!("{} of {} trials passed", case.pass_count, case.total_trials);
    let reruns = failed_trials.map(|(number, trial)| rerun(*number, trial));
    match case.status {
        Status::Passed => {
            let mut status = TestCaseStatus::success();
            status.add_reruns(reruns);
            status
        }
        Status::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("no verdict: trials are missing");
            status
        }
        // A failed test case would fail the pipeline, but this target does not gate.
        Status::Failed | Status::Error if !gate => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("{rate}; the target does not gate"));
            status
        }
        Status::Failed | Status::Error => {
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
