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
            error @ bakeoff_eval::Error::Create { .. } => CliError::Internal {
                message: chain(&error),
                hint: Some("`--out` sets the folder of all runs".to_owned()),
                result: EventFields::new(),
            },
            error => CliError::internal(chain(&error)),
        }
    }
}

impl From<bakeoff_history::Error> for CliError {
    fn from(error: bakeoff_history::Error) -> CliError {
        match error {
            bakeoff_history::Error::Usage { message, hint } => {
                CliError::Usage(UsageError { message, hint })
            }
            bakeoff_history::Error::Run(error) => error.into(),
            error => CliError::internal(chain(&error)),
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
        CliError::internal(chain(&error))
    }
}
