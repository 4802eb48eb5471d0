//! Objective of a search.

use bakeoff_core::NanoDollars;
use serde::{Deserialize, Serialize};

/// Quantity to maximise: the score, minus weighted cost and latency, under an optional cost limit.
///
/// Cost and latency are divided by the maxima of the first round. These are fixed from then on:
/// values measured on a moving scale would not be comparable.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Objective {
    /// Points of score subtracted from the most expensive cell; a free cell loses none.
    pub cost_weight: f64,
    /// Points of score subtracted from the slowest cell; an instant one loses none.
    pub latency_weight: f64,
    /// Maximum mean cost of a datapoint; a more expensive combination cannot win.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::money::optional_dollars"
    )]
    pub max_cost: Option<NanoDollars>,
}

impl Objective {
    /// Whether cost or latency is weighed against the score.
    pub fn is_weighted(&self) -> bool {
        self.cost_weight != 0.0 || self.latency_weight != 0.0
    }
}
