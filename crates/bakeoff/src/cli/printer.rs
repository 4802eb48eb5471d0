//! Output to the terminal and the envelope of `--json`.
//!
//! All commands print through [`Printer`]. With `--json`, standard output carries one JSON object per line:
//! `event` (its name), `time` (RFC 3339, UTC) and the fields of the event. The last line is a `done` or an
//! `error` event.

use crate::error::{CliError, UsageError};
use crate::outcome::{EventFields, Outcome, insert};
use crate::problems;
use bakeoff_agent::AgentEvent;
use bakeoff_core::{Event, ExitCode, Redactor, one_line, printable};
use chrono::{SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputMode {
    /// Data on standard output, messages on standard error.
    Text,
    /// Data and messages on standard error, because an export uses standard output.
    Redirected,
    /// Errors and requested answers only.
    Quiet,
    /// JSON events on standard output.
    Json,
}

/// Writer of data, messages, events and errors. Uses colours only on terminals.
#[derive(Debug)]
pub(crate) struct Printer {
    mode: OutputMode,
    /// Secrets to remove from events.
    redactor: OnceLock<Redactor>,
    /// Set when data could not be written.
    has_lost_data: AtomicBool,
}

impl Printer {
    pub(crate) fn new(mode: OutputMode) -> Printer {
        Printer { mode, redactor: OnceLock::new(), has_lost_data: AtomicBool::new(false) }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.mode == OutputMode::Json
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.mode == OutputMode::Quiet
    }

    /// Returns whether progress is displayed on standard error.
    pub(crate) fn shows_progress(&self) -> bool {
        self.is_text()
    }

    fn is_text(&self) -> bool {
        matches!(self.mode, OutputMode::Text | OutputMode::Redirected)
    }

    /// Removes these secrets from all later events. Prompts and replies may contain some.
    pub(crate) fn redact(&self, redactor: Redactor) {
        // A command sets it once.
        let _ = self.redactor.set(redactor);
    }

    /// Prints a line of data in text mode.
    pub(crate) fn data(&self, line: impl AsRef<str>) {
        match self.mode {
            OutputMode::Text => {
                self.check_written(writeln!(anstream::stdout(), "{}", printable(line.as_ref())));
            }
            OutputMode::Redirected => self.message(line),
            OutputMode::Quiet | OutputMode::Json => {}
        }
    }

    /// Prints the answer of a model, even in quiet mode. Control characters do not reach a terminal.
    pub(crate) fn answer(&self, text: impl AsRef<str>) {
        if self.is_json() {
            return;
        }
        let mut out = std::io::stdout().lock();
        let text = text.as_ref();
        let written = match out.is_terminal() {
            true => writeln!(out, "{}", printable(text)),
            false => writeln!(out, "{text}"),
        };
        self.check_written(written);
    }

    /// Prints a piece of the answer of a model at once, without a line break.
    pub(crate) fn answer_piece(&self, text: &str) {
        if self.is_json() || text.is_empty() {
            return;
        }
        let mut out = std::io::stdout().lock();
        let written = match out.is_terminal() {
            true => write!(out, "{}", printable(text)),
            false => write!(out, "{text}"),
        };
        self.check_written(written.and_then(|()| out.flush()));
    }

    /// Prints a message on standard error in text mode.
    pub(crate) fn message(&self, line: impl AsRef<str>) {
        if self.is_text() {
            let _ = writeln!(anstream::stderr(), "{}", printable(line.as_ref()));
        }
    }

    /// Prints a message on standard error in every mode but quiet: prompts and reactions to signals.
    pub(crate) fn notice(&self, line: impl AsRef<str>) {
        if self.mode != OutputMode::Quiet {
            let _ = writeln!(anstream::stderr(), "{}", printable(line.as_ref()));
        }
    }

    /// Prints a warning, as an event with `--json`.
    pub(crate) fn warning(&self, message: impl AsRef<str>) {
        match self.is_json() {
            true => self.event("warning", json!({ "message": message.as_ref() })),
            false => self.message(format!("warning: {}", one_line(message.as_ref()))),
        }
    }

    /// Prints a warning with its code, as an event with `--json`.
    pub(crate) fn warning_with_code(&self, code: &str, message: &str) {
        match self.is_json() {
            true => self.event("warning", json!({ "code": code, "message": message })),
            false => self.message(format!("warning: {} [{code}]", one_line(message))),
        }
    }

    /// Prints a hint below a message.
    pub(crate) fn hint(&self, hint: impl AsRef<str>) {
        self.message(format!("  hint: {}", hint.as_ref()));
    }

    /// Prints an error with its hint on standard error.
    pub(crate) fn error(&self, message: impl AsRef<str>, hint: Option<&str>) {
        const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
        let mut err = anstream::stderr();
        let _ = writeln!(err, "{ERROR}error{ERROR:#}: {}", printable(message.as_ref()));
        if let Some(hint) = hint {
            let _ = writeln!(err, "  hint: {}", printable(hint));
        }
    }

    /// Prints an event with `--json`. `fields` must be an object.
    pub(crate) fn event(&self, name: &str, fields: Value) {
        if self.is_json() {
            self.write_line(&Envelope { event: name, time: now(), fields: &fields });
        }
    }

    /// Prints an event of a run or a search with `--json`, otherwise only warnings.
    pub(crate) fn run_event(&self, event: &Event) {
        match event {
            _ if self.is_json() => self.write_line(&RunEventLine { event, time: now() }),
            Event::Warning { code, message } => self.warning_with_code(code, message),
            _ => {}
        }
    }

    /// Prints an event of an agent with `--json`. Its name is in `type`.
    pub(crate) fn agent_event(&self, event: &AgentEvent) {
        if !self.is_json() {
            return;
        }
        let mut fields = match serde_json::to_value(event) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let name = fields.remove("type");
        let name = name.as_ref().and_then(Value::as_str).unwrap_or("unknown");
        self.write_line(&Envelope { event: name, time: now(), fields: &fields });
    }

    fn write_line(&self, line: &impl Serialize) {
        let written = serde_json::to_string(line).map_err(std::io::Error::from).and_then(|line| {
            let line = match self.redactor.get() {
                Some(redactor) => redactor.scrub(line),
                None => line,
            };
            let mut out = std::io::stdout().lock();
            writeln!(out, "{line}").and_then(|()| out.flush())
        });
        self.check_written(written);
    }

    /// Ends the output of a command: prints its error or its `done` event, and returns the exit code.
    pub(crate) fn finish(&self, outcome: Result<Outcome, CliError>) -> ExitCode {
        let code = match outcome {
            Ok(Outcome { exit_code, mut result }) => {
                if self.is_json() {
                    insert(&mut result, "exit_code", exit_code.code());
                    self.write_line(&Envelope { event: "done", time: now(), fields: &result });
                }
                exit_code
            }
            Err(error) => {
                self.print_error(&error);
                self.error_event(&error)
            }
        };
        if self.has_lost_data.load(Ordering::Relaxed) { ExitCode::Internal } else { code }
    }

    fn print_error(&self, error: &CliError) {
        match error {
            CliError::Usage(UsageError { message, hint })
            | CliError::Internal { message, hint, .. } => self.error(message, hint.as_deref()),
            CliError::Problems(found) => {
                for problem in found {
                    let _ = writeln!(anstream::stderr(), "{}", problems::render(problem));
                }
                self.error(problems::summary(found), None);
            }
            // The signal handler has printed it.
            CliError::Aborted => {}
        }
    }

    /// Prints the `error` event with `--json`, and returns the exit code.
    pub(crate) fn error_event(&self, error: &CliError) -> ExitCode {
        let code = error.exit_code();
        if !self.is_json() {
            return code;
        }
        let (message, hint) = match error {
            CliError::Usage(UsageError { message, hint })
            | CliError::Internal { message, hint, .. } => (message.clone(), hint.clone()),
            CliError::Problems(found) => (problems::summary(found), None),
            CliError::Aborted => ("aborted by a second signal".to_owned(), None),
        };
        let mut fields = match error {
            CliError::Internal { result, .. } => result.clone(),
            CliError::Problems(found) => {
                let mut fields = EventFields::new();
                let found: Vec<Value> = found.iter().map(problems::to_json).collect();
                insert(&mut fields, "problems", found);
                fields
            }
            _ => EventFields::new(),
        };
        insert(&mut fields, "message", message);
        insert(&mut fields, "hint", hint);
        insert(&mut fields, "exit_code", code.code());
        self.write_line(&Envelope { event: "error", time: now(), fields: &fields });
        code
    }

    /// Records lost data. A closed pipe is not a loss: the reader has seen enough.
    fn check_written(&self, written: std::io::Result<()>) {
        if let Err(error) = written
            && error.kind() != std::io::ErrorKind::BrokenPipe
            && !self.has_lost_data.swap(true, Ordering::Relaxed)
        {
            self.error(format!("cannot write to standard output: {error}"), None);
        }
    }
}

/// A line of `--json`.
#[derive(Serialize)]
struct Envelope<'a, F> {
    event: &'a str,
    time: String,
    /// A map or a JSON object.
    #[serde(flatten)]
    fields: &'a F,
}

/// A line of `--json` with an event that contains its name.
#[derive(Serialize)]
struct RunEventLine<'a> {
    #[serde(flatten)]
    event: &'a Event,
    time: String,
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Returns the messages of an error and its sources on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some messages include their source.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Formats a number with its noun: `1 case`, `2 cases`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
