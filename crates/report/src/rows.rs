//! CSV with one row per trial.

use crate::Error;
use bakeoff_core::{CheckResult, Status, TrialResult};
use std::io::Write;

/// CSV writer for trials.
pub struct CsvRows<W: Write>(csv::Writer<W>);

const COLUMNS: [&str; 15] = [
    "target",
    "case",
    "trial",
    "status",
    "score",
    "latency_ms",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "cached",
    "retries",
    "failed_checks",
    "check_scores",
    "error",
    "output",
];

impl<W: Write> CsvRows<W> {
    /// Creates the writer and writes the header.
    pub fn new(writer: W) -> Result<CsvRows<W>, Error> {
        let mut rows = csv::Writer::from_writer(writer);
        rows.write_record(COLUMNS).map_err(convert_error)?;
        Ok(CsvRows(rows))
    }

    /// Writes one trial.
    pub fn write(&mut self, result: &TrialResult) -> Result<(), Error> {
        let attempt = &result.attempt;
        let text = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let failed_check = |check: &&CheckResult| !check.passed;
        let failed_checks: Vec<&str> =
            result.checks.iter().filter(failed_check).map(|check| check.check.as_str()).collect();
        let check_scores: Vec<String> =
            result.checks.iter().map(|check| format!("{}={}", check.check, check.score)).collect();
        let error = attempt.error.as_ref().map_or("", |error| error.message.as_str());
        self.0
            .write_record([
                result.key.target.as_str(),
                result.key.case.as_str(),
                &result.key.trial.to_string(),
                status_label(result.status),
                &result.score.map_or_else(String::new, |score| score.to_string()),
                &attempt.timing.latency_ms.to_string(),
                &text(attempt.usage.map(|usage| usage.prompt())),
                &text(attempt.usage.map(|usage| usage.output)),
                &attempt.cost.map_or_else(String::new, |cost| format!("{:.9}", cost.as_dollars())),
                if attempt.cached { "true" } else { "false" },
                &attempt.timing.retries.to_string(),
                &failed_checks.join(" "),
                &check_scores.join(" "),
                error,
                &attempt.output,
            ])
            .map_err(convert_error)
    }

    /// Flushes the writer.
    pub fn finish(mut self) -> Result<(), Error> {
        self.0.flush().map_err(Error::Write)
    }
}

fn status_label(status: Status) -> &'static str {
    match status {
        Status::Passed => "passed",
        Status::Failed => "failed",
        Status::Error => "error",
        Status::Skipped => "skipped",
    }
}

fn convert_error(error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Error::Write(error),
        other => Error::Format(format!("{other:?}")),
    }
}
