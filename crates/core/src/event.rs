//! The one linear stream of what happens in a run.
//!
//! The engine makes it; journal, terminal and JSON output are consumers, and a recorded stream
//! replays through them.

use crate::{LimitRecord, PoolState, RunId, Summary, TargetName, TrialKey, TrialResult, Verdict};
use serde::{Deserialize, Serialize};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// [`crate::SCHEMA_VERSION`] of the writer.
        schema_version: u32,
        /// The run's id.
        run_id: RunId,
        /// What will be done.
        plan: RunPlan,
    },
    /// A run goes on that was interrupted or killed, or is made larger.
    RunResumed {
        /// [`crate::SCHEMA_VERSION`] of the writer.
        schema_version: u32,
        /// The run's id.
        run_id: RunId,
        /// What it is about as a whole.
        plan: RunPlan,
        /// Trials that need not be made again.
        done: u64,
    },
    /// A trial begins.
    TrialStarted {
        /// Which one.
        key: TrialKey,
    },
    /// A program was started for a trial. Should this process die, the next one ends it.
    ProgramStarted {
        /// For which trial.
        key: TrialKey,
        /// The process group that it leads.
        group: ProcessGroup,
    },
    /// A call of a trial will be made again.
    Retry {
        /// Which trial.
        key: TrialKey,
        /// How long it waits; 0 when it goes to the front of its pool's queue.
        delay_ms: u64,
        /// Why.
        reason: String,
    },
    /// A trial is over.
    TrialFinished {
        /// How.
        result: Box<TrialResult>,
    },
    /// The number of requests that may be in flight to a model has changed.
    Limit {
        /// From what to what, and why.
        change: LimitRecord,
    },
    /// How the calls to a model are doing; every second while the run goes on.
    Pool {
        /// The figures.
        pool: PoolState,
    },
    /// Something that people should know and that does not stop the run.
    Warning {
        /// A code such as `EVAL_COST_WARNING`.
        code: String,
        /// What they should know.
        message: String,
    },
    /// The run is over and its files are written.
    Done {
        /// Where they are.
        run_dir: String,
        /// The run's verdict.
        verdict: Verdict,
        /// What the shell is told.
        exit_code: u8,
        /// What is said of it.
        summary: Box<Summary>,
    },
}

/// A process group, told apart from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessGroup {
    /// Its number, which is that of its leader.
    pub id: i32,
    /// When its leader started, in the system's ticks since it was booted; 0 where that cannot be
    /// known.
    pub started: u64,
}

/// What a run is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The suite's name.
    pub suite: String,
    /// Names of the targets.
    pub targets: Vec<TargetName>,
    /// How many cases.
    pub cases: u64,
    /// Trials of each case.
    pub trials: u32,
    /// Trials in all.
    pub total: u64,
    /// The seed.
    pub seed: u64,
}
