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
    /// Somebody else's file is where the journal should be.
    #[error("{} is not the journal of a job", .0.display())]
    NotAJournal(PathBuf),
    /// A folder or a device is where a file should be.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// There is no folder to write to.
    #[error("cannot write {}: there is no such folder", .0.display())]
    NoFolder(PathBuf),
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
    #[error("{} has been changed: from byte {at} on is something else than was written", path.display())]
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
    /// Nothing can be asked within the limits.
    #[error("a prompt without any row needs about {needed} tokens, and a request may have {most}")]
    NoRoom {
        /// Tokens.
        needed: u64,
        /// Tokens.
        most: u64,
    },
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
            Error::Journal(_)
            | Error::Output { .. }
            | Error::NoFolder(_)
            | Error::Unfinished(_) => false,
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
            Error::NoRoom { .. } => {
                Some("shorten the instructions, or raise `context_tokens` or the limit on tokens")
            }
            Error::NotAJournal(_) => Some("move it away, or name another file for the output"),
            Error::NotAFile(_) => Some("name another file for the output"),
            Error::NoFolder(_) => Some("make the folder first"),
            Error::SameFile(_) => Some("name another file for the output"),
            Error::Collision(_) => Some(
                "rename the field of the answer, or let `into` in the task name a key that no row has",
            ),
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
