//! What keeps a job from being done.

use crate::rows::RowsError;
use bakeoff_pace::LimitsError;
use std::path::PathBuf;

/// What keeps a job from being done. A row without an answer is not one of these: it is a row.
#[derive(Debug, thiserror::Error)]
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
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The name does not say how to write it.
    #[error("{} is neither .jsonl, .ndjson nor .csv", .0.display())]
    UnknownOutput(PathBuf),
    /// Somebody else's file is where the output should be.
    #[error("{} exists, and has no journal beside it", .0.display())]
    OutputExists(PathBuf),
    /// The output would destroy the input.
    #[error("{} is the input, and would be written over", .0.display())]
    SameFile(PathBuf),
    /// The journal belongs to another job.
    #[error("{} was begun with {what}", path.display())]
    Changed {
        /// The output.
        path: PathBuf,
        /// What is different.
        what: String,
    },
    /// Somebody has changed what was written.
    #[error("{} has been changed: at byte {at} is something else than was written", path.display())]
    Edited {
        /// The output, or the facts beside it.
        path: PathBuf,
        /// From which byte on.
        at: u64,
    },
    /// Rows were exchanged while the job went on.
    #[error("{} has changed since the job has begun", .0.display())]
    InputChanged(PathBuf),
    /// Requests ended without a word about their rows.
    #[error("{0} of the rows were not asked about; please report this")]
    Unfinished(u64),
    /// An answer would hide what the rows have.
    #[error("the rows already have a field `{0}`")]
    Collision(String),
    /// A field to show that no row has.
    #[error("no row has the field `{0}` that the task shows")]
    NoSuchField(String),
    /// A field has a name that the form of replies needs for itself.
    #[error("{0}")]
    Format(String),
    /// Nobody is asked.
    #[error("no model is named")]
    NoModel,
    /// The limits of a model are impossible.
    #[error("limits: {0}")]
    Limits(#[from] LimitsError),
}

impl Error {
    /// Whether something has to be asked for differently; otherwise a file or the system refuses.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::Rows(error) => !matches!(error, RowsError::Io { .. }),
            Error::Journal(_) | Error::Output { .. } | Error::Unfinished(_) => false,
            _ => true,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Rows(error) => error.hint(),
            Error::Format(_) => Some("rename the field, or take another `--format`"),
            Error::OutputExists(_) => Some("name another file, or `--force` to write over it"),
            Error::Changed { .. } => Some(
                "go on with what it was begun with, name another file, or `--force` to begin anew",
            ),
            Error::SameFile(_) => Some("name another file for the output"),
            Error::Collision(_) => {
                Some("rename the output field, or put `into = \"answer\"` into the task")
            }
            Error::Journal(bakeoff_journal::Error::Locked { .. }) => {
                Some("wait until the other one is done")
            }
            Error::Journal(bakeoff_journal::Error::Damaged { .. }) => {
                Some("`--force` begins anew; what is cached is not paid for again")
            }
            Error::Edited { .. } => Some(
                "move it away, and the same command writes it again as it was; or `--force` to \
                 begin anew",
            ),
            Error::InputChanged(_) => {
                Some("`--force` begins anew; what is cached is not paid for again")
            }
            Error::UnknownOutput(_) => Some("the ending says how rows are written"),
            _ => None,
        }
    }
}
