//! Errors of commands and the exit codes that they map to.

use crate::outcome::EventFields;
use crate::printer::chain;
use bakeoff_core::ExitCode;
use bakeoff_suite::{Problem, SuiteError};

/// Invalid arguments or configuration. Nothing was called.
#[derive(Debug)]
pub(crate) struct UsageError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl UsageError {
    pub(crate) fn new(message: impl Into<String>) -> UsageError {
        UsageError { message: message.into(), hint: None }
    }

    /// Adds what to do about the error.
    pub(crate) fn hint(self, hint: impl Into<String>) -> UsageError {
        UsageError { hint: Some(hint.into()), ..self }
    }
}

/// Reason why a command produced no outcome. Printed once, by [`crate::printer::Printer::finish`].
#[derive(Debug)]
pub(crate) enum CliError {
    /// Invalid arguments.
    Usage(UsageError),
    /// Invalid suite or task file, with all problems that were found.
    Problems(Vec<Problem>),
    /// Internal or I/O error.
    Internal {
        message: String,
        hint: Option<String>,
        /// Result that exists in spite of the error, for `--json`.
        result: EventFields,
    },
    /// Aborted by a second signal.
    Aborted,
}

impl CliError {
    pub(crate) fn internal(message: impl Into<String>) -> CliError {
        CliError::Internal { message: message.into(), hint: None, result: EventFields::new() }
    }

    /// Adds what to do about an internal error.
    pub(crate) fn hint(self, hint: &str) -> CliError {
        match self {
            CliError::Internal { message, result, .. } => {
                CliError::Internal { message, hint: Some(hint.to_owned()), result }
            }
            other => other,
        }
    }

    /// Returns the exit code of the process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            CliError::Usage(_) | CliError::Problems(_) => ExitCode::Usage,
            CliError::Internal { .. } => ExitCode::Internal,
            CliError::Aborted => ExitCode::Interrupted,
        }
    }
}

impl From<UsageError> for CliError {
    fn from(error: UsageError) -> CliError {
        CliError::Usage(error)
    }
}

impl From<SuiteError> for CliError {
    fn from(error: SuiteError) -> CliError {
        CliError::Problems(error.into_problems())
    }
}

impl From<bakeoff_eval::Error> for CliError {
    fn from(error: bakeoff_eval::Error) -> CliError {
        match error {
            bakeoff_eval::Error::Usage { code, message, hint } => {
                let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
                CliError::Usage(UsageError { message: format!("{message}{code}"), hint })
            }
            error @ bakeoff_eval::Error::Create { .. } => {
                CliError::internal(chain(&error)).hint("`--out` sets the folder of all runs")
            }
            bakeoff_eval::Error::Journal(ref journal) => {
                CliError::internal(chain(&error)).hint(journal_hint(journal))
            }
            error @ bakeoff_eval::Error::Cases(_) => CliError::internal(chain(&error))
                .hint("restore the case file; `--resume` then completes the run"),
            error => CliError::internal(chain(&error)).hint(FILES_HINT),
        }
    }
}

/// What to do about a file of a run that cannot be read or written.
const FILES_HINT: &str = "check permissions and free space; `--resume` then completes the run";

/// Returns what to do about a journal of a run that cannot be read or written.
fn journal_hint(error: &bakeoff_journal::Error) -> &'static str {
    match error {
        bakeoff_journal::Error::Locked { .. } => "wait until the other process has finished",
        bakeoff_journal::Error::Damaged { .. } => {
            "remove this line from the file, and run the command again"
        }
        _ => FILES_HINT,
    }
}

impl From<bakeoff_history::Error> for CliError {
    fn from(error: bakeoff_history::Error) -> CliError {
        match error {
            bakeoff_history::Error::Usage { message, hint } => {
                CliError::Usage(UsageError { message, hint })
            }
            bakeoff_history::Error::Run(error) => error.into(),
            bakeoff_history::Error::Journal(ref journal)
            | bakeoff_history::Error::Log(ref journal) => {
                CliError::internal(chain(&error)).hint(journal_hint(journal))
            }
            error => CliError::internal(chain(&error)).hint("check permissions and the disk"),
        }
    }
}

impl From<bakeoff_map::Error> for CliError {
    fn from(error: bakeoff_map::Error) -> CliError {
        let (message, hint) = (chain(&error), error.hint().map(str::to_owned));
        match error.is_usage() {
            true => CliError::Usage(UsageError { message, hint }),
            false => CliError::Internal { message, hint, result: EventFields::new() },
        }
    }
}

impl From<bakeoff_llm::CacheError> for CliError {
    fn from(error: bakeoff_llm::CacheError) -> CliError {
        CliError::internal(chain(&error)).hint("`bakeoff cache clear` deletes the cache")
    }
}
