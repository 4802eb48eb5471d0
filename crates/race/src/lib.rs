//! Which of several answers is best, now?
//!
//! [`agent_loop_parallel`] sends one prompt through several configs at once, lets an
//! [`EvaluationStrategy`] choose, and gives back the winner's context, with which the session goes
//! on. A branch that fails, panics or is stopped takes no other down and never wins.

mod error;
mod outcome;
mod parallel;
mod session;
mod strategies;
mod strategy;

pub use error::{BranchFailure, RaceError};
pub use outcome::{ParallelLoopOutcome, ParallelLoopResult, Selected};
pub use parallel::{Race, agent_loop_parallel};
pub use session::{RecordedRace, RecordedSession, SessionError, SessionFile, UnfinishedRace};
pub use strategies::{
    CheapestEvaluation, ElaborateEvaluation, FastestEvaluation, PickFirstEvaluation,
    TokenEfficientEvaluation, TransparentEvaluation,
};
pub use strategy::{Ballot, EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
