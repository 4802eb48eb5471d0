//! What requests used.

use bakeoff_core::{NanoDollars, Usage};
use serde::{Deserialize, Serialize};

/// What one or more requests used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spent {
    /// Requests that were made, answered or not.
    pub(super) requests: u64,
    /// Answers that had been paid for by an earlier job.
    pub(super) cached: u64,
    /// What they cost; `None` when nobody knows the price.
    #[serde(rename = "cost_nanodollars")]
    pub(super) cost: Option<NanoDollars>,
    pub(super) usage: Usage,
}

impl Default for Spent {
    /// Nothing, and its price is known.
    fn default() -> Spent {
        Spent { requests: 0, cached: 0, cost: Some(NanoDollars(0)), usage: Usage::default() }
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.requests += other.requests;
        self.cached += other.cached;
        self.cost = self.cost.zip(other.cost).map(|(sum, cost)| sum.saturating_add(cost));
        self.usage += other.usage;
    }
}
