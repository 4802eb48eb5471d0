//! The error type of this crate.

use crate::rows::RowsError;
use crate::task::ReservedNameError;
use bakeoff_pace::LimitsError;
use std::path::PathBuf;

/// Reason why a job cannot run. A row without an answer is not an error but a row of the output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// The journal cannot be written or read.
    #[error(transparent)]
    Journal(#[from] bakeoff_journal::Error),
    /// The output cannot be written or read.
    #[error("cannot {action} {}", path.display())]
    Output {
        /// The failed operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The extension of the output file is unknown.
    #[error("unsupported output format: {}", .0.display())]
    UnknownOutput(PathBuf),
    /// A file that does not belong to the job is in the place of the output.
    #[error("{} already exists and has no journal", .0.display())]
    OutputExists(PathBuf),
    /// A file that is no journal is in the place of the journal.
    #[error("{} is not the journal of a job", .0.display())]
    NotAJournal(PathBuf),
    /// A folder or a device is in the place of a file.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The folder of the output does not exist.
    #[error("cannot write {}: no such folder", .0.display())]
    NoFolder(PathBuf),
    /// The output would overwrite the input.
    #[error("{} is the input and would be overwritten", .0.display())]
    SameFile(PathBuf),
    /// The journal belongs to a different job.
    #[error("{} was started with {difference}", path.display())]
    DifferentJob {
        /// The output.
        path: PathBuf,
        /// The first setting that differs, with its earlier value.
        difference: String,
    },
    /// An output file was edited since the job wrote it.
    #[error("{} was edited: its contents differ from byte {at}", path.display())]
    Edited {
        /// The output, or the file with batch values.
        path: PathBuf,
        /// Position of the first difference, accurate to a written entry.
        at: u64,
    },
    /// The input changed during the job.
    #[error("{} changed after the job started", .0.display())]
    InputChanged(PathBuf),
    /// The job ended without requests for some rows. This is a bug.
    #[error("{0} rows were not processed; please report this bug")]
    Unfinished(u64),
    /// An answer field has the name of an input field.
    #[error("the rows already have a field `{0}`")]
    Collision(String),
    /// No row has a field that the task shows.
    #[error("no row has the field `{0}` listed in `show`")]
    NoSuchField(String),
    /// A field has a name that is reserved in the reply format.
    #[error(transparent)]
    ReservedName(#[from] ReservedNameError),
    /// The prompt exceeds the limit on tokens even without rows.
    #[error(
        "the prompt without rows needs about {needed} tokens, but a request may have at most {max}"
    )]
    PromptTooLarge {
        /// Tokens of the prompt and one answer.
        needed: u64,
        /// Maximum tokens of a request.
        max: u64,
    },
    /// An item in memory cannot be serialized.
    #[error("item {index} cannot be serialized")]
    Item {
        /// Index of the item, from 0.
        index: u64,
        /// The cause.
        source: serde_json::Error,
    },
    /// No model is configured.
    #[error("no model given")]
    NoModel,
    /// The limits of a model are invalid.
    #[error("limits: {0}")]
    Limits(#[from] LimitsError),
}

impl Error {
    /// Returns whether the error is a usage error. Other errors come from the file system or are bugs.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::Rows(error) => !matches!(error, RowsError::Io { .. }),
            Error::Journal(_)
            | Error::Output { .. }
            | Error::NoFolder(_)
            | Error::Unfinished(_) => false,
            _ => true,
        }
    }

    /// Returns a hint on how to fix the error.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Rows(error) => error.hint(),
            Error::ReservedName(_) => Some("rename the field, or use another `--format`"),
            Error::OutputExists(_) => {
                Some("choose another output file, or use `--force` to overwrite it")
            }
            Error::DifferentJob { .. } => Some(
                "use the same settings, choose another output file, or use `--force` to start over",
            ),
            Error::PromptTooLarge { .. } => {
                Some("shorten the instructions, or raise `context_tokens` or the limit on tokens")
            }
            Error::NotAJournal(_) => Some("move it away, or choose another output file"),
            Error::NotAFile(_) | Error::SameFile(_) => Some("choose another output file"),
            Error::NoFolder(_) => Some("create the folder first"),
            Error::Collision(_) => {
                Some("rename the answer field, or set `into` in the task to a key that no row has")
            }
            Error::Journal(bakeoff_journal::Error::Locked { .. }) => {
                Some("wait until the other process has finished")
            }
            Error::Journal(bakeoff_journal::Error::Damaged { .. }) | Error::InputChanged(_) => {
                Some("use `--force` to start over; cached responses cost nothing")
            }
            Error::Edited { .. } => Some(
                "move it away and run the same command to restore it, or use `--force` to start over",
            ),
            Error::UnknownOutput(_) => Some("use a .jsonl, .ndjson or .csv file"),
            _ => None,
        }
    }
}
