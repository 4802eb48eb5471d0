//! CSV with one row per trial.

use crate::Error;
use bakeoff_core::{CheckResult, Status, TrialResult, printable};
use serde_json::{Map, Value};
use std::io::Write;

/// CSV writer for trials.
pub struct CsvRows<'f, W: Write> {
    writer: csv::Writer<W>,
    /// Names of the case fields with a column.
    fields: Vec<&'f str>,
}

/// Field of a case that has a column of its own.
const ID: &str = "id";

const COLUMNS: [&str; 16] = [
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
    "prompt",
];

impl<'f, W: Write> CsvRows<'f, W> {
    /// Creates the writer and writes the header, with a column `case.<name>` for each of these case fields.
    pub fn new(writer: W, fields: &'f [String]) -> Result<CsvRows<'f, W>, Error> {
        let mut writer = csv::Writer::from_writer(writer);
        let fields: Vec<&str> =
            fields.iter().map(String::as_str).filter(|name| *name != ID).collect();
        let own = fields.iter().map(|name| format!("case.{name}"));
        let header = COLUMNS.iter().map(|name| (*name).to_owned()).chain(own);
        writer.write_record(header.map(|name| inert(&name))).map_err(convert_error)?;
        Ok(CsvRows { writer, fields })
    }

    /// Writes one trial with its prompt and the fields of its case.
    pub fn write(
        &mut self,
        result: &TrialResult,
        prompt: Option<&str>,
        case: Option<&Map<String, Value>>,
    ) -> Result<(), Error> {
        let attempt = &result.attempt;
        let text = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let failed_check = |check: &&CheckResult| !check.passed;
        let failed_checks: Vec<&str> =
            result.checks.iter().filter(failed_check).map(|check| check.check.as_str()).collect();
        let check_scores: Vec<String> =
            result.checks.iter().map(|check| format!("{}={}", check.check, check.score)).collect();
        let error = attempt.error.as_ref().map_or("", |error| error.message.as_str());
        let own = [
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
            prompt.unwrap_or_default(),
        ]
        .map(str::to_owned);
        let field =
            |name: &&str| case.and_then(|case| case.get(*name)).map_or_else(String::new, cell);
        let row = own.into_iter().chain(self.fields.iter().map(field));
        self.writer.write_record(row.map(|cell| inert(&cell))).map_err(convert_error)
    }

    /// Flushes the writer.
    pub fn finish(mut self) -> Result<(), Error> {
        self.writer.flush().map_err(Error::Write)
    }
}

/// Returns a cell that no spreadsheet takes for a formula: an apostrophe precedes text that starts like one, and text has no
/// control characters. Numbers stay as they are.
fn inert(cell: &str) -> String {
    let cell = printable(cell);
    let is_formula =
        cell.starts_with(['=', '+', '-', '@', '\t']) && cell.trim().parse::<f64>().is_err();
    if is_formula { format!("'{cell}") } else { cell.into_owned() }
}

/// Returns a string itself, and other values as JSON.
fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_neither_formulas_nor_terminal_commands() {
        for (cell, expected) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("+1+1", "'+1+1"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'=1"),
            ("\u{1b}]0;title\u{7}=1", "]0;title=1"),
            ("-0.5", "-0.5"),
            ("+3e2", "+3e2"),
            ("a = b\n- c", "a = b\n- c"),
            ("", ""),
        ] {
            assert_eq!(inert(cell), expected, "{cell:?}");
        }
    }
}
