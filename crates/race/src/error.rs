//! Races without a winner.

use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{Verdict, VerdictKind};
use bakeoff_agent::{LoopError, LoopId};
use bakeoff_core::Usage;

/// A race that has no winner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RaceError {
    /// There is nothing to choose among. Nothing was called.
    #[error("there are no configs; a race needs at least one")]
    NoConfigs,
    /// No branch could begin. Nothing was called.
    #[error(transparent)]
    Context(LoopError),
    /// One branch could not begin. Nothing was called.
    #[error("config {}: {source}", index + 1)]
    Config {
        /// Its place among the configs.
        index: usize,
        /// Why not.
        source: LoopError,
    },
    /// The strategy cannot choose among these configs. Nothing was called.
    #[error("{strategy}: {reason}")]
    Strategy {
        /// Name of the strategy.
        strategy: String,
        /// Why not.
        reason: String,
    },
    /// A race that was interrupted cannot go on with other configs. Nothing was called.
    #[error("the race that was interrupted is one of {had}, not of {has}")]
    Changed {
        /// Segments of its configs.
        had: String,
        /// Segments of those that were given.
        has: String,
    },
    /// No branch came to its end with an answer.
    #[error("all branches failed: {}", list(failures))]
    AllFailed {
        /// One per branch, in the order of the configs.
        failures: Vec<BranchFailure>,
        /// What the branches left behind.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches.
        total_usage: Usage,
    },
    /// The strategy rejects every branch, or nobody can say whether one will do; the verdict's kind
    /// tells which.
    #[error("{}: {}", without_winner(verdict), verdict.reasons.join("; "))]
    NoneAcceptable {
        /// What the strategy found.
        verdict: Box<Verdict>,
        /// What the branches left behind.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches and of the evaluation.
        total_usage: Usage,
    },
    /// The strategy chose a branch that is not there or cannot win.
    #[error("{strategy} chose branch {}, which cannot win: {reason}", index + 1)]
    BadDecision {
        /// Name of the strategy.
        strategy: String,
        /// What it chose.
        index: usize,
        /// Why that cannot be.
        reason: String,
        /// What the branches left behind.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches and of the evaluation.
        total_usage: Usage,
    },
    /// Somebody stopped it.
    #[error("the race was cancelled")]
    Cancelled {
        /// What the branches left behind.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches and of the evaluation, as far as they are known.
        total_usage: Usage,
    },
}

impl RaceError {
    /// Tokens that the race took; none when it did not begin.
    pub fn total_usage(&self) -> Usage {
        match self {
            RaceError::AllFailed { total_usage, .. }
            | RaceError::NoneAcceptable { total_usage, .. }
            | RaceError::BadDecision { total_usage, .. }
            | RaceError::Cancelled { total_usage, .. } => *total_usage,
            _ => Usage::default(),
        }
    }

    /// What the branches left behind; nothing when the race did not begin.
    pub fn outcomes(&self) -> &[ParallelLoopOutcome] {
        match self {
            RaceError::AllFailed { outcomes, .. }
            | RaceError::NoneAcceptable { outcomes, .. }
            | RaceError::BadDecision { outcomes, .. }
            | RaceError::Cancelled { outcomes, .. } => outcomes,
            _ => &[],
        }
    }
}

/// Why one branch failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchFailure {
    /// Its place among the configs.
    pub config_index: usize,
    /// Its loop.
    pub loop_id: LoopId,
    /// Why.
    pub reason: String,
}

fn without_winner(verdict: &Verdict) -> &'static str {
    match verdict.kind {
        VerdictKind::CannotSay => "nobody can say whether an answer will do",
        _ => "none of the answers will do",
    }
}

fn list(failures: &[BranchFailure]) -> String {
    let one = |failure: &BranchFailure| format!("{}: {}", failure.loop_id, failure.reason);
    failures.iter().map(one).collect::<Vec<_>>().join("; ")
}
