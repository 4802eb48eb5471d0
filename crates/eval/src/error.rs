//! Errors of runs.

use bakeoff_suite::Problem;
use std::path::PathBuf;

/// An error that keeps a run from starting or finishing. A failed trial is data, not an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request does not fit the suite or the earlier run.
    #[error("{message}")]
    Usage {
        /// Code for scripts, such as `EVAL_INVALID_THRESHOLD`.
        code: Option<&'static str>,
        /// Description of the problem.
        message: String,
        /// Suggested fix.
        hint: Option<String>,
    },
    /// The folder of a run cannot be created.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// Path of the folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A file of a run, or the folder of all runs, cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// Results cannot be written.
    #[error("cannot write {}: {source} [EVAL_TRIAL_ARTIFACTS_CORRUPT]", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The journal cannot be written or read back.
    #[error("{0} [EVAL_TRIAL_ARTIFACTS_CORRUPT]")]
    Journal(#[from] bakeoff_journal::Error),
    /// The case file changed during the run.
    #[error("cannot read the cases any more: {0}")]
    Cases(Problem),
}

impl Error {
    /// Returns a usage error without a code.
    pub(crate) fn usage(message: impl Into<String>, hint: Option<String>) -> Error {
        Error::Usage { code: None, message: message.into(), hint }
    }
}
