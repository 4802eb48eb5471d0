//! Trial execution.
//!
//! [`Run`] executes all trials of a [`bakeoff_suite::Suite`], journals each result before it counts,
//! and ends with a [`bakeoff_core::Summary`]. [`SearchRun`] executes only the trials that a selector
//! asks for, and [`rescore`] checks stored outputs again. Progress is reported as
//! [`bakeoff_core::Event`]s; terminals and reports are not part of this crate.

mod active_run;
mod aggregate;
mod attempt;
mod best_effort_log;
mod budget;
mod case_files;
mod case_selection;
mod check_runner;
mod cleanup;
mod client;
mod code_check;
mod config;
mod context;
mod control;
mod dispatch;
mod error;
mod estimate;
mod folder;
mod isolation;
mod journal_damage;
mod lane;
mod limit_overrides;
mod model_judge;
mod path_name;
mod recorder;
mod rescore;
mod resume;
mod run;
mod run_file;
mod search;
mod stopper;
mod stopping;
mod summary_file;
mod tally;
mod target_feeder;
mod target_record;
mod timestamp;
mod trace;
mod traffic_log;
mod trial;
mod trial_plan;
mod trial_record;
mod verdict_rule;
mod warnings;
mod work_folder;

pub use aggregate::{Aggregate, RunCriteria};
pub use check_runner::{CheckRunner, OnRetry};
pub use code_check::PythonWorkers;
pub use config::RunConfig;
pub use control::{TuneError, TuneReply, TuneRequest, TunedPool, tune};
pub use error::Error;
pub use estimate::{Estimate, TargetEstimate, estimate, estimate_cases};
pub use folder::{
    CASES_FILE, HTTP_FILE, JOURNAL_FILE, LIMITS_FILE, RUN_FILE, RunFolder, SUMMARY_FILE,
};
pub use journal_damage::{JOURNAL_DAMAGED, JournalDamage};
pub use rescore::{RescoreInput, rescore};
pub use resume::ResumeState;
pub use run::{FinishedRun, Run};
pub use run_file::{
    CasesRecord, ChosenRecord, Layout, OwnRuleRecord, RunFile, SelectRecord, SuiteRecord,
};
pub use search::{FinishedSearch, SearchOverrides, SearchRun, SelectionFile};
pub use stopper::Stopper;
pub use traffic_log::HttpCallback;
pub use trial_plan::{TrialPlan, TrialRule};
