//! Who says which cells to pay for.

use crate::evidence::Evidence;
use crate::space::Cell;
use serde::{Deserialize, Serialize};

/// Says which cells to pay for next, and when it has seen enough.
///
/// It is asked again when everything that it wanted has been observed. With the same seed and the
/// same observations it says the same, so that it does not matter how many cells are evaluated at
/// once.
pub trait Selector: Send {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// What to do now.
    fn next(&mut self, evidence: &Evidence) -> Step;

    /// What it would say if it had to decide now; `None` where the best mean is all it could say.
    fn so_far(&self, _evidence: &Evidence) -> Option<Choice> {
        None
    }

    /// What was given up, in order.
    fn eliminations(&self) -> &[Elimination] {
        &[]
    }
}

/// What to do now.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Pay for these cells.
    Evaluate(Round),
    /// This one.
    Choose(Choice),
    /// Nobody can be chosen, for this reason: whatever was paid for errored.
    GiveUp(String),
}

/// Cells that can be evaluated in any order, or all at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The cells; none of them has been paid for.
    pub cells: Vec<Cell>,
    /// Datapoints that one combination has in it at most, by which the concurrency is shared out.
    pub batch: usize,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The best combination, as far as anybody can tell.
    pub combo: usize,
    /// How sure that is; `None` where the selector makes no such claim.
    pub confidence: Option<f64>,
    /// Why it stopped.
    pub reason: String,
}

/// A combination that was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elimination {
    /// Which one.
    pub combo: usize,
    /// After so many cells in all.
    pub after_cells: usize,
    /// Because of this one, where it is one.
    pub by: Option<usize>,
}
