//! Finished and interrupted runs on disk.
//!
//! [`find_run`] and [`list`] find runs, [`PastRun`] reads one and its trials, [`compare`] compares targets, [`score`]
//! checks stored outputs again, and [`resume_state`] reads what [`bakeoff_eval::Run`] needs to continue
//! an interrupted run. Rendering is not part of this crate.

mod compare;
mod compared_target;
mod error;
mod find;
mod list;
mod logs;
mod paired_test;
mod past_run;
mod plan_differences;
mod prune;
mod resume;
mod score;
mod stored_trial;
mod trial_exchange;
mod trial_inputs;
mod trial_traces;

pub use compare::{CompareConfig, compare};
pub use compared_target::{ComparedTarget, TargetPair, TargetPairs, pair_targets};
pub use error::Error;
pub use find::find_run;
pub use list::{RunState, StoredRun, list};
pub use logs::{LogEntries, RunLog, http_log, limit_log};
pub use past_run::PastRun;
pub use prune::{OldRun, old_runs};
pub use resume::resume_state;
pub use score::score;
pub use stored_trial::{StoredTrial, TrialSelection};
pub use trial_exchange::{ExchangeMessage, JudgeRecord, ToolCallRecord, TrialExchange};
pub use trial_inputs::{TrialInput, TrialInputs};
pub use trial_traces::{TrialTrace, trial_traces};
