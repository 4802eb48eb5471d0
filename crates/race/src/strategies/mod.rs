//! Built-in strategies.

mod extraction;
mod family;
mod figures;
mod majority;
mod pairwise;
mod panel;
mod transparent;
mod verifier;
mod verifiers;

pub(crate) use family::family_warnings;

pub use extraction::{Extraction, Extractor};
pub use figures::{
    CheapestEvaluation, ElaborateEvaluation, FastestEvaluation, PickFirstEvaluation,
    TokenEfficientEvaluation,
};
pub use majority::MajorityEvaluation;
pub use pairwise::PairwiseEvaluation;
pub use panel::PanelEvaluation;
pub use transparent::TransparentEvaluation;
pub use verifier::{Verification, VerifierEvaluation, Verify};
pub use verifiers::ProgramVerifier;

use crate::outcome::ParallelLoopOutcome;

/// Returns the branches that can win, with their indices.
pub(crate) fn eligible(
    outcomes: &[ParallelLoopOutcome],
) -> impl Iterator<Item = (usize, &ParallelLoopOutcome)> {
    outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_eligible())
}
