//! What is to be made large.

use serde::{Deserialize, Serialize};

/// What is to be made large: the score, less what money and time are worth.
///
/// Money and time are divided by the largest of what the first cells took, which is fixed from then
/// on: a measure that moves would compare what was measured differently.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Objective {
    /// Points of score that the dearest is worth less than one that costs nothing.
    pub cost_weight: f64,
    /// Points of score that the slowest is worth less than one that takes no time.
    pub latency_weight: f64,
    /// Dollars that a datapoint may cost on average; who costs more cannot win.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

impl Objective {
    /// Whether money and time are weighed against the score.
    pub fn is_weighted(&self) -> bool {
        self.cost_weight != 0.0 || self.latency_weight != 0.0
    }
}
