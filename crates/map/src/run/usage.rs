//! Number, cost and token usage of requests.

use bakeoff_core::{NanoDollars, Usage};
use serde::{Deserialize, Serialize};

/// Usage of one or more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequestUsage {
    /// Requests sent, including failed ones.
    pub(super) requests: u64,
    /// Responses served from the cache.
    pub(super) cached: u64,
    /// Total cost; `None` if a price is unknown.
    #[serde(rename = "cost_nanodollars")]
    pub(super) cost: Option<NanoDollars>,
    /// Likely cost of failed requests for which providers charge, until it is added to `cost`.
    #[serde(skip)]
    pub(super) lost: NanoDollars,
    #[serde(rename = "usage")]
    pub(super) tokens: Usage,
}

impl Default for RequestUsage {
    /// Returns zero usage with a known cost of zero.
    fn default() -> RequestUsage {
        RequestUsage {
            requests: 0,
            cached: 0,
            cost: Some(NanoDollars(0)),
            lost: NanoDollars(0),
            tokens: Usage::default(),
        }
    }
}

impl std::ops::AddAssign for RequestUsage {
    fn add_assign(&mut self, other: RequestUsage) {
        self.requests += other.requests;
        self.cached += other.cached;
        self.add_cost(other.cost);
        self.lost += other.lost;
        self.tokens += other.tokens;
    }
}

impl RequestUsage {
    /// Adds a cost, which may be unknown.
    pub(super) fn add_cost(&mut self, cost: Option<NanoDollars>) {
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
    }
}
