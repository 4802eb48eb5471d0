//! The strategies that come with the house.

mod figures;
mod transparent;

pub use figures::{
    CheapestEvaluation, ElaborateEvaluation, FastestEvaluation, PickFirstEvaluation,
    TokenEfficientEvaluation,
};
pub use transparent::TransparentEvaluation;

use crate::outcome::ParallelLoopOutcome;

/// The branches that can win, with their places.
fn eligible(
    outcomes: &[ParallelLoopOutcome],
) -> impl Iterator<Item = (usize, &ParallelLoopOutcome)> {
    outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_eligible())
}
