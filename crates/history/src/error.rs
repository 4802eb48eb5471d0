//! Errors of stored runs.

use std::path::PathBuf;

/// Reason why a stored run cannot be found, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request does not fit the stored runs.
    #[error("{message}")]
    Usage {
        /// Description of the problem.
        message: String,
        /// Suggested fix.
        hint: Option<String>,
    },
    /// A file of a run, or the folder of all runs, cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// An old run cannot be deleted.
    #[error("cannot delete {}: {source}", path.display())]
    Delete {
        /// Path of its folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The journal of a run cannot be read.
    #[error("{0} [EVAL_TRIAL_ARTIFACTS_CORRUPT]")]
    Journal(#[from] bakeoff_journal::Error),
    /// A log of a run cannot be read, or its journal is in use.
    #[error(transparent)]
    Log(bakeoff_journal::Error),
    /// The plan of a run cannot be read, or its outputs cannot be checked again.
    #[error(transparent)]
    Run(#[from] bakeoff_eval::Error),
}

impl Error {
    pub(crate) fn usage(message: impl Into<String>, hint: Option<String>) -> Error {
        Error::Usage { message: message.into(), hint }
    }
}
