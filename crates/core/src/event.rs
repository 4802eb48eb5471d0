//! Event stream of a run.
//!
//! The engine emits one linear stream. Journal, terminal and JSON output consume it, and a recorded
//! stream can be replayed through them.

use crate::{LimitRecord, PoolState, RunId, Summary, TargetName, TrialKey, TrialResult, Verdict};
use serde::{Deserialize, Serialize};

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run started.
    RunStarted {
        /// [`crate::SCHEMA_VERSION`] of the writer.
        schema_version: u32,
        /// The run's id.
        run_id: RunId,
        /// Planned work.
        plan: RunPlan,
    },
    /// An interrupted, killed or extended run was resumed.
    RunResumed {
        /// [`crate::SCHEMA_VERSION`] of the writer.
        schema_version: u32,
        /// The run's id.
        run_id: RunId,
        /// Planned work of the whole run.
        plan: RunPlan,
        /// Finished trials.
        done: u64,
    },
    /// A trial started.
    TrialStarted {
        /// Key of the trial.
        key: TrialKey,
    },
    /// A program was started for a trial. If this process dies, the process that resumes the run
    /// terminates the program.
    ProgramStarted {
        /// Key of the trial.
        key: TrialKey,
        /// Process group of the program.
        group: ProcessGroup,
    },
    /// A call of a trial will be retried.
    Retry {
        /// Key of the trial.
        key: TrialKey,
        /// Delay of the retry; 0 when it goes to the front of its pool's queue.
        delay_ms: u64,
        /// Reason of the retry.
        reason: String,
    },
    /// A trial finished.
    TrialFinished {
        /// Result of the trial.
        result: Box<TrialResult>,
    },
    /// The concurrency limit of a model changed.
    Limit {
        /// Old limit, new limit and reason.
        change: LimitRecord,
    },
    /// State of a pool, emitted every second during the run.
    Pool {
        /// State of the pool.
        pool: PoolState,
    },
    /// A warning that does not stop the run.
    Warning {
        /// Code such as `EVAL_COST_WARNING`.
        code: String,
        /// Text of the warning.
        message: String,
    },
    /// The run finished and its files are written.
    Done {
        /// Folder of the files.
        run_dir: String,
        /// Verdict of the run.
        verdict: Verdict,
        /// Exit code of the process.
        exit_code: u8,
        /// Summary of the run.
        summary: Box<Summary>,
    },
}

/// Identity of a process group, distinct from a later group with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessGroup {
    /// Process id of the leader.
    pub id: i32,
    /// Start of the leader in system ticks since boot; 0 where it is unknown.
    pub started: u64,
}

/// Planned work of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The suite's name.
    pub suite: String,
    /// Names of the targets.
    pub targets: Vec<TargetName>,
    /// Number of cases.
    pub cases: u64,
    /// Trials per case.
    pub trials: u32,
    /// Total number of trials.
    pub total: u64,
    /// The seed.
    pub seed: u64,
}
