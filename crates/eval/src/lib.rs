//! Trial execution.
//!
//! [`Run`] executes all trials of a [`bakeoff_suite::Suite`], journals each result before it counts,
//! and ends with a [`bakeoff_core::Summary`]. [`Search`] executes only the trials that a selector asks
//! for, and [`rescore`] checks stored outputs again. Progress is reported as [`bakeoff_core::Event`]s;
//! terminals and reports are not part of this crate.

mod aggregate;
mod attempt;
mod case_files;
mod choice;
mod cleanup;
mod code;
mod dispatch;
mod estimate;
mod folder;
mod judge;
mod judged;
mod lane;
mod limited;
mod record;
mod rescore;
mod resume;
mod run;
mod runfile;
mod search;
mod shared;
mod stopping;
mod summaryfile;
mod tally;
mod traffic;
mod trial;
mod underway;
mod warnings;

pub use aggregate::{Aggregate, Measure};
pub use code::Python;
pub use estimate::{Estimate, TargetEstimate, estimate};
pub use folder::{HTTP_FILE, JOURNAL_FILE, LIMITS_FILE, RUN_FILE, RunFolder, SUMMARY_FILE};
pub use judge::{Judge, OnRetry};
pub use rescore::{RescoreInput, rescore};
pub use resume::ResumeState;
pub use run::{Finished, Run, RunConfig, Stopper};
pub use runfile::{CasesRecord, ChosenRecord, Layout, RunFile, SelectRecord, SuiteRecord};
pub use search::{Search, SearchOverrides, Searched, SelectionFile};
pub use traffic::LiveHttp;

use bakeoff_suite::Problem;
use std::path::PathBuf;

/// Why a run cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for does not fit the suite.
    #[error("{message}")]
    Usage {
        /// A code such as `EVAL_INVALID_THRESHOLD`, for scripts.
        code: Option<&'static str>,
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// The folder of a run cannot be made.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The folder of all runs cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Results cannot be written.
    #[error("cannot write {}: {source} [EVAL_TRIAL_ARTIFACTS_CORRUPT]", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Results cannot be written or read back.
    #[error("{0} [EVAL_TRIAL_ARTIFACTS_CORRUPT]")]
    Journal(#[from] bakeoff_journal::Error),
    /// A log of a run cannot be read.
    #[error(transparent)]
    Log(bakeoff_journal::Error),
    /// The cases changed under the run.
    #[error("the cases can no longer be read: {0}")]
    Cases(Problem),
}
