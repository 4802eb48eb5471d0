//! Output of the benchmarks: data on standard output, messages on standard error.

use bakeoff_core::ExitCode;
use serde::Serialize;
use std::io::Write;

/// Writes lines of data, JSON and messages.
#[derive(Debug, Default)]
pub(crate) struct Printer;

impl Printer {
    /// Writes a line of data.
    pub(crate) fn data(&self, line: impl AsRef<str>) {
        let _ = writeln!(std::io::stdout(), "{}", line.as_ref());
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json(&self, value: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            self.data(text);
        }
    }

    /// Writes a message.
    pub(crate) fn message(&self, line: impl AsRef<str>) {
        let _ = writeln!(std::io::stderr(), "{}", line.as_ref());
    }

    /// Reports invalid input.
    pub(crate) fn usage_error(&self, message: &str, hint: Option<&str>) -> ExitCode {
        self.message(format!("error: {message}"));
        if let Some(hint) = hint {
            self.message(format!("  hint: {hint}"));
        }
        ExitCode::Usage
    }

    /// Reports a measurement that failed, with its causes.
    pub(crate) fn failure(&self, error: &dyn std::error::Error) -> ExitCode {
        self.message(format!("error: {}", chain(error)));
        ExitCode::Internal
    }
}

/// Returns an error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors include the text of their cause.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
