//! The selector interface.

use crate::evidence::Evidence;
use crate::space::Cell;
use serde::{Deserialize, Serialize};

/// Decides which cells to evaluate next, and when to stop.
///
/// [`next`](Selector::next) is called again once all cells of its last step have been observed. The
/// same seed and the same observations give the same steps, so the result does not depend on how many
/// cells run concurrently.
pub trait Selector: Send {
    /// Returns the selector's name.
    fn name(&self) -> &'static str;

    /// Returns the next step.
    fn next(&mut self, evidence: &Evidence) -> SelectorStep;

    /// Returns the choice if the search ended now; `None` if the best mean is the only criterion.
    fn so_far(&self, _evidence: &Evidence) -> Option<SelectorChoice> {
        None
    }

    /// Returns what the confidence of a choice means, as a clause: "no combination is better on these cases"; `None` if
    /// the selector makes no such claim.
    fn claim(&self) -> Option<String> {
        None
    }

    /// Returns what is missing if the search ended now, as a clause: "the model chose no combination"; `None` if nothing is.
    fn caveat(&self, _evidence: &Evidence) -> Option<&'static str> {
        None
    }

    /// Returns the eliminations so far, in order.
    fn eliminations(&self) -> &[Elimination] {
        &[]
    }
}

/// Next step of a selector.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectorStep {
    /// Evaluate these cells.
    Evaluate(EvaluationRound),
    /// Stop with this choice.
    Choose(SelectorChoice),
    /// Stop without a choice, for this reason; usually all evaluated cells errored.
    NoWinner(String),
}

/// Cells that can be evaluated in any order, or concurrently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationRound {
    /// The cells; none has been evaluated before.
    pub cells: Vec<Cell>,
    /// Maximum number of datapoints per combination.
    pub batch: usize,
}

/// Choice of a selector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectorChoice {
    /// Number of the combination that is considered best.
    pub combo: usize,
    /// Confidence in it; `None` if the selector makes no such claim.
    pub confidence: Option<f64>,
    /// Reason to stop.
    pub reason: String,
}

/// Removal of a combination from the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elimination {
    /// Number of the combination.
    pub combo: usize,
    /// Cells evaluated in total at that time.
    pub after_cells: usize,
    /// Number of the combination that caused it, if there is one.
    pub by: Option<usize>,
}
