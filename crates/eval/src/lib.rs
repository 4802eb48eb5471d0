//! How good is it?
//!
//! [`Suite::load`] reads and checks a suite; [`Run`] makes all its trials, journals each before it
//! is counted, and ends with a [`bakeoff_core::Summary`]. Terminals are for others: what happens
//! comes out as [`bakeoff_core::Event`]s.

mod aggregate;
mod attempt;
mod case;
mod casefile;
mod choice;
mod code;
mod compare;
mod dispatch;
mod estimate;
mod folder;
mod judge;
mod judged;
mod lane;
mod limited;
mod list;
mod past;
mod problem;
mod record;
mod resume;
mod run;
mod runfile;
mod score;
mod search;
mod shared;
mod stopping;
mod stored;
mod suite;
mod summaryfile;
mod tally;
mod template;
mod traffic;
mod trial;
mod underway;
mod warnings;

pub use aggregate::{Aggregate, Measure};
pub use case::{Case, CaseSource, Survey};
pub use compare::{CompareConfig, Compared, compare, pairs};
pub use estimate::{Estimate, TargetEstimate, estimate};
pub use folder::RunFolder;
pub use judge::{Judge, OnRetry};
pub use list::{RunState, StoredRun, list};
pub use past::PastRun;
pub use problem::{Place, Problem};
pub use run::{Finished, Run, RunConfig, Stopper};
pub use runfile::{CasesRecord, ChosenRecord, Layout, RunFile, SelectRecord, SuiteRecord};
pub use search::{Search, SearchOverrides, Searched, SelectionFile};
pub use stopping::EarlyStop;
pub use stored::{Entries, Traced, find_run, http_log, limit_log};
pub use suite::{
    AgentSettings, Artifacts, Budget, CacheScope, ChainTarget, CheckSpec, ModelTarget,
    ProgramTarget, Project, Protocol, SUITE_FILE_NAME, SelectBudget, SelectObjective, SelectPlan,
    ServiceTarget, Settings, Step, Suite, SuiteModels, Target, TargetKind, Wanted, schema,
    suite_models,
};
pub use template::Template;
pub use traffic::LiveHttp;

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
