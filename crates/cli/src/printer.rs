//! The one place that writes to the terminal.

use serde::Serialize;
use std::io::Write;

/// Data to standard output, talk to standard error. Colours only where somebody can see them.
///
/// A reader that went away is no reason to stop: exit codes still count.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    /// Nothing but errors.
    pub(crate) quiet: bool,
}

impl Printer {
    /// A line of data.
    pub(crate) fn data(&self, line: impl AsRef<str>) {
        if !self.quiet {
            let _ = writeln!(anstream::stdout(), "{}", line.as_ref());
        }
    }

    /// A line of JSON.
    pub(crate) fn json(&self, value: &impl Serialize) {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let _ = serde_json::to_writer(&mut out, value);
        let _ = writeln!(out);
    }

    /// A line of talk.
    pub(crate) fn talk(&self, line: impl AsRef<str>) {
        if !self.quiet {
            let _ = writeln!(anstream::stderr(), "{}", line.as_ref());
        }
    }

    /// What went wrong, and what to do about it.
    pub(crate) fn error(&self, message: impl AsRef<str>, hint: Option<&str>) {
        const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
        let mut err = anstream::stderr();
        let _ = writeln!(err, "{ERROR}error{ERROR:#}: {}", message.as_ref());
        if let Some(hint) = hint {
            let _ = writeln!(err, "  hint: {hint}");
        }
    }

    /// Text that is laid out already.
    pub(crate) fn report(&self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{text}");
    }
}

/// An error and what caused it, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors say their cause themselves.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
