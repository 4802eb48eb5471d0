//! Errors of races.

use crate::outcome::ParallelLoopOutcome;
use crate::strategy::{Verdict, VerdictKind};
use bakeoff_agent::{LoopError, LoopId};
use bakeoff_core::Usage;

/// Why a race has no winner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RaceError {
    /// No configs were given. No call was made.
    #[error("no configs given; a race needs at least one")]
    NoConfigs,
    /// No branch can start. No call was made.
    #[error(transparent)]
    Context(LoopError),
    /// One branch cannot start. No call was made.
    #[error("config {}: {source}", index + 1)]
    Config {
        /// Index of the config.
        index: usize,
        /// The reason.
        source: LoopError,
    },
    /// The strategy cannot handle these configs. No call was made.
    #[error("{strategy}: {reason}")]
    Strategy {
        /// Name of the strategy.
        strategy: String,
        /// The reason.
        reason: String,
    },
    /// An interrupted race cannot resume with other configs. No call was made.
    #[error("the interrupted race has the models {recorded}, not {given}")]
    ConfigsChanged {
        /// Segments of the recorded configs.
        recorded: String,
        /// Segments of the given configs.
        given: String,
    },
    /// No branch completed with an answer.
    #[error("all branches failed: {}", list(failures))]
    AllFailed {
        /// One per branch, in the order of the configs.
        failures: Vec<BranchFailure>,
        /// Outcomes of the branches.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches.
        total_usage: Usage,
    },
    /// The strategy rejects every branch, or the verifier gave no result; the verdict's kind distinguishes
    /// these.
    #[error("{}: {}", describe_missing_winner(verdict), verdict.reasons.join("; "))]
    NoneAcceptable {
        /// The strategy's verdict.
        verdict: Box<Verdict>,
        /// Outcomes of the branches.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches and of the evaluation.
        total_usage: Usage,
    },
    /// The strategy selected a branch that does not exist or cannot win.
    #[error("{strategy} selected branch {}, which cannot win: {reason}", index + 1)]
    BadDecision {
        /// Name of the strategy.
        strategy: String,
        /// The selected index.
        index: usize,
        /// Why the branch cannot win.
        reason: String,
        /// Outcomes of the branches.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches and of the evaluation.
        total_usage: Usage,
    },
    /// The strategy, or a verifier that it uses, panicked.
    #[error("{strategy} panicked: {message}")]
    StrategyPanicked {
        /// Name of the strategy.
        strategy: String,
        /// Message of the panic.
        message: String,
        /// Outcomes of the branches.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches; those of the evaluation are unknown.
        total_usage: Usage,
    },
    /// The race was cancelled.
    #[error("the race was cancelled")]
    Cancelled {
        /// Outcomes of the branches.
        outcomes: Vec<ParallelLoopOutcome>,
        /// Tokens of all branches and of the evaluation, as far as known.
        total_usage: Usage,
    },
}

impl RaceError {
    /// Returns the tokens that the race used; none if it did not start.
    pub fn total_usage(&self) -> Usage {
        match self {
            RaceError::AllFailed { total_usage, .. }
            | RaceError::NoneAcceptable { total_usage, .. }
            | RaceError::BadDecision { total_usage, .. }
            | RaceError::StrategyPanicked { total_usage, .. }
            | RaceError::Cancelled { total_usage, .. } => *total_usage,
            _ => Usage::default(),
        }
    }

    /// Returns the outcomes of the branches; none if the race did not start.
    pub fn outcomes(&self) -> &[ParallelLoopOutcome] {
        match self {
            RaceError::AllFailed { outcomes, .. }
            | RaceError::NoneAcceptable { outcomes, .. }
            | RaceError::BadDecision { outcomes, .. }
            | RaceError::StrategyPanicked { outcomes, .. }
            | RaceError::Cancelled { outcomes, .. } => outcomes,
            _ => &[],
        }
    }
}

/// Why one branch failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchFailure {
    /// Index of the config.
    pub config_index: usize,
    /// Id of the branch's loop.
    pub loop_id: LoopId,
    /// The reason.
    pub reason: String,
}

fn describe_missing_winner(verdict: &Verdict) -> &'static str {
    match verdict.kind {
        VerdictKind::Inconclusive => "the verifier gave no result",
        _ => "no answer is acceptable",
    }
}

fn list(failures: &[BranchFailure]) -> String {
    let one = |failure: &BranchFailure| format!("{}: {}", failure.loop_id, failure.reason);
    failures.iter().map(one).collect::<Vec<_>>().join("; ")
}
