//! Budget of a search, and the meter that enforces it.

use bakeoff_core::NanoDollars;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits of a search; each is optional.
///
/// Once a limit is reached, no further cell starts and running cells are finished, so a search
/// exceeds its budget by at most the cells in flight.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SearchBudget {
    /// Maximum cost.
    pub cost: Option<NanoDollars>,
    /// Maximum number of cells.
    pub cells: Option<usize>,
    /// Maximum duration; in a replay, the sum of the latencies of its cells.
    pub time: Option<Duration>,
}

/// Limit that ended a search early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchLimit {
    /// The cost budget.
    Cost,
    /// The cell budget.
    Cells,
    /// The time budget.
    Time,
    /// A request to stop.
    Halted,
}

impl std::fmt::Display for SearchLimit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            SearchLimit::Cost => "the cost budget is exhausted",
            SearchLimit::Cells => "the cell budget is exhausted",
            SearchLimit::Time => "the time budget is exhausted",
            SearchLimit::Halted => "the search was interrupted",
        })
    }
}

/// Running totals of a search, checked against its budget.
#[derive(Debug, Clone, Default)]
pub(crate) struct BudgetMeter {
    budget: SearchBudget,
    started: usize,
    spent: NanoDollars,
    /// Cells whose cost is part of `spent`.
    paid: usize,
    running: usize,
    stopped: Option<SearchLimit>,
}

impl BudgetMeter {
    pub(crate) fn new(budget: SearchBudget) -> BudgetMeter {
        BudgetMeter { budget, ..BudgetMeter::default() }
    }

    /// Starts a cell and returns true, or returns false if the budget is exhausted.
    pub(crate) fn start(&mut self, elapsed: Duration) -> bool {
        let limit = if self.budget.cost.is_some_and(|limit| self.reaches(limit)) {
            Some(SearchLimit::Cost)
        } else if self.budget.cells.is_some_and(|limit| self.started >= limit) {
            Some(SearchLimit::Cells)
        } else if self.budget.time.is_some_and(|limit| elapsed >= limit) {
            Some(SearchLimit::Time)
        } else {
            None
        };
        // The first limit that was reached is the reason.
        self.stopped = self.stopped.or(limit);
        let can_start = self.stopped.is_none();
        self.started += usize::from(can_start);
        self.running += usize::from(can_start);
        can_start
    }

    /// Whether the amount spent reaches `limit`. Each running cell counts as much as the mean of the
    /// finished ones: spent + running · spent / paid ≥ limit.
    fn reaches(&self, limit: NanoDollars) -> bool {
        let paid = self.paid.max(1) as i128;
        let due = i128::from(self.spent.0) * (paid + self.running as i128);
        due >= i128::from(limit.0) * paid
    }

    /// Prevents further starts.
    pub(crate) fn halt(&mut self) {
        self.stopped = self.stopped.or(Some(SearchLimit::Halted));
    }

    /// Adds a cell of an earlier process: the budget is for the whole search.
    pub(crate) fn resume(&mut self, cost: NanoDollars) {
        self.started += 1;
        self.paid += 1;
        self.spent += cost;
    }

    /// Adds the cost of a cell that has finished.
    pub(crate) fn pay(&mut self, cost: NanoDollars) {
        self.running = self.running.saturating_sub(1);
        self.paid += 1;
        self.spent += cost;
    }

    pub(crate) fn stopped(&self) -> Option<SearchLimit> {
        self.stopped
    }
}
