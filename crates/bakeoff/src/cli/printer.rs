//! The one place that writes to the terminal.

use bakeoff_core::ExitCode;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Data to standard output, talk to standard error. Colours only where somebody can see them.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    /// Nothing but errors.
    pub(crate) quiet: bool,
    /// Data could not be written.
    lost: AtomicBool,
}

impl Printer {
    pub(crate) fn new(quiet: bool) -> Printer {
        Printer { quiet, lost: AtomicBool::new(false) }
    }

    /// A line of data.
    pub(crate) fn data(&self, line: impl AsRef<str>) {
        if !self.quiet {
            self.note(writeln!(anstream::stdout(), "{}", line.as_ref()));
        }
    }

    /// Data that is wanted however quiet it should be. What models say does nothing to a terminal.
    pub(crate) fn answer(&self, text: impl AsRef<str>) {
        let mut out = std::io::stdout().lock();
        let text = text.as_ref();
        let written = match out.is_terminal() {
            true => writeln!(out, "{}", harmless(text)),
            false => writeln!(out, "{text}"),
        };
        self.note(written);
    }

    /// A line of JSON.
    pub(crate) fn json(&self, value: &impl Serialize) {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let written = serde_json::to_writer(&mut out, value).map_err(std::io::Error::from);
        self.note(written.and_then(|()| writeln!(out)).and_then(|()| out.flush()));
    }

    /// A reader that went away has seen enough; anything else is a loss.
    fn note(&self, written: std::io::Result<()>) {
        if let Err(error) = written
            && error.kind() != std::io::ErrorKind::BrokenPipe
            && !self.lost.swap(true, Ordering::Relaxed)
        {
            self.error(format!("cannot write to standard output: {error}"), None);
        }
    }

    /// The exit code, unless data was lost.
    pub(crate) fn settle(&self, code: ExitCode) -> ExitCode {
        if self.lost.load(Ordering::Relaxed) { ExitCode::Internal } else { code }
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

/// A text from outside without the characters that control terminals.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control() || ['\n', '\t'].contains(letter)).collect()
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

/// `1 case`, `2 cases`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_say_does_nothing_to_a_terminal() {
        let text = "I \u{1b}[31mpick\u{1b}]0;pwn\u{7} it\n\tand\r\u{9b}2J é 漢";
        assert_eq!(harmless(text), "I [31mpick]0;pwn it\n\tand2J é 漢");
    }
}
