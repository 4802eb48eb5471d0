//! Which of several answers is best, now?
//!
//! [`agent_loop_parallel`] sends one prompt through several configs at once, lets an
//! [`EvaluationStrategy`] choose, and gives back the winner's context, with which the session goes
//! on. A branch that fails, panics or is stopped takes no other down and never wins.

mod error;
mod judge;
mod names;
mod outcome;
mod parallel;
mod session;
mod strategies;
mod strategy;
#[cfg(test)]
mod testing;
mod tie;

pub use error::{BranchFailure, RaceError};
pub use judge::{LlmJudgeEvaluation, Orders};
pub use outcome::{ParallelLoopOutcome, ParallelLoopResult, Selected};
pub use parallel::{Race, agent_loop_parallel};
pub use session::{RecordedRace, RecordedSession, SessionError, SessionFile, UnfinishedRace};
pub use strategies::{
    CheapestEvaluation, ElaborateEvaluation, Extraction, Extractor, FastestEvaluation,
    MajorityEvaluation, PairwiseEvaluation, PanelEvaluation, PickFirstEvaluation, ProgramVerifier,
    TokenEfficientEvaluation, TransparentEvaluation, VerifierEvaluation, Verify,
};
pub use strategy::{Ballot, EvaluationDecision, EvaluationStrategy, Verdict, VerdictKind};
