//! Budget of a search, and the meter that enforces it.

use bakeoff_core::NanoDollars;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Running cells for each finished one while the cost is limited: the cost of the first cells is unknown.
const RUNNING_PER_FINISHED: usize = 2;

/// Limits of a search; each is optional.
///
/// Once a limit is reached, no further cell starts and running cells are finished. Running cells count as much as
/// the most expensive finished one, a cell that could exceed the cost limit waits for them, and the first cell runs
/// alone, so that only a cell that is more expensive than all before it can exceed the cost limit.
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

/// Whether a cell may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellStart {
    /// It counts as started.
    Started,
    /// The cost of running cells must be known first.
    Wait,
    /// A limit is reached; no cell starts any more.
    Stopped,
}

/// Running totals of a search, checked against its budget.
#[derive(Debug, Clone, Default)]
pub(crate) struct BudgetMeter {
    budget: SearchBudget,
    started: usize,
    spent: NanoDollars,
    /// Cells whose cost is part of `spent`.
    paid: usize,
    most_expensive: NanoDollars,
    running: usize,
    stopped: Option<SearchLimit>,
}

impl BudgetMeter {
    pub(crate) fn new(budget: SearchBudget) -> BudgetMeter {
        BudgetMeter { budget, ..BudgetMeter::default() }
    }

    /// Starts a cell if the budget allows it.
    pub(crate) fn start(&mut self, elapsed: Duration) -> CellStart {
        let reaches_cost = self.budget.cost.is_some_and(|limit| self.reaches(limit));
        let limit = if reaches_cost && self.running > 0 && self.stopped.is_none() {
            // Running cells usually cost less than the most expensive one, so that others may follow.
            return CellStart::Wait;
        } else if reaches_cost {
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
        if self.stopped.is_some() {
            return CellStart::Stopped;
        }
        let max_running = (RUNNING_PER_FINISHED * self.paid).max(1);
        if self.budget.cost.is_some() && self.running >= max_running {
            return CellStart::Wait;
        }
        self.started += 1;
        self.running += 1;
        CellStart::Started
    }

    /// Whether another cell could exceed `limit`, if it and all running cells cost as much as the most expensive
    /// one so far.
    fn reaches(&self, limit: NanoDollars) -> bool {
        let unpaid = self.running as i128 + 1;
        let likely = i128::from(self.spent.0) + unpaid * i128::from(self.most_expensive.0);
        likely > i128::from(limit.0) || self.spent >= limit
    }

    /// Prevents further starts.
    pub(crate) fn stop(&mut self, limit: SearchLimit) {
        self.stopped = self.stopped.or(Some(limit));
    }

    /// Adds a cell of an earlier process: the budget is for the whole search.
    pub(crate) fn resume(&mut self, cost: NanoDollars) {
        self.started += 1;
        self.running += 1;
        self.pay(cost);
    }

    /// Adds the cost of a cell that has finished.
    pub(crate) fn pay(&mut self, cost: NanoDollars) {
        self.running = self.running.saturating_sub(1);
        self.paid += 1;
        self.spent += cost;
        self.most_expensive = self.most_expensive.max(cost);
    }

    pub(crate) fn stopped(&self) -> Option<SearchLimit> {
        self.stopped
    }
}
