//! What a search may take.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a search may take. When it is spent no cell is started any more, and those that run are
/// finished, so that it is exceeded by no more than those.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Dollars.
    pub cost: Option<f64>,
    /// Cells.
    pub cells: Option<usize>,
    /// Time; in a replay, the time that its cells would take one after the other.
    pub time: Option<Duration>,
}

/// What ended a search early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The money was spent.
    Cost,
    /// As many cells as allowed were evaluated.
    Cells,
    /// The time was over.
    Time,
    /// Somebody wanted it to end.
    Halted,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Limit::Cost => "the money of the budget is spent",
            Limit::Cells => "the cells of the budget are spent",
            Limit::Time => "the time of the budget is over",
            Limit::Halted => "it was ended from outside",
        })
    }
}

/// What was taken so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    budget: Budget,
    started: usize,
    spent: f64,
    /// Cells whose price is in `spent`.
    paid: usize,
    /// Cells that run.
    running: usize,
    stopped: Option<Limit>,
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Meter {
        Meter { budget, ..Meter::default() }
    }

    /// Starts a cell if there is still something to spend.
    pub(crate) fn start(&mut self, elapsed: Duration) -> bool {
        // Those that run will have to be paid as well; they are taken to cost what others did.
        let mean = self.spent / self.paid.max(1) as f64;
        let due = self.spent + mean * self.running as f64;
        let over = if self.budget.cost.is_some_and(|most| due >= most) {
            Some(Limit::Cost)
        } else if self.budget.cells.is_some_and(|most| self.started >= most) {
            Some(Limit::Cells)
        } else if self.budget.time.is_some_and(|most| elapsed >= most) {
            Some(Limit::Time)
        } else {
            None
        };
        // The first limit that was met is the reason.
        self.stopped = self.stopped.or(over);
        let starts = self.stopped.is_none();
        self.started += usize::from(starts);
        self.running += usize::from(starts);
        starts
    }

    /// Starts nothing more.
    pub(crate) fn halt(&mut self) {
        self.stopped = self.stopped.or(Some(Limit::Halted));
    }

    /// A cell that was paid for before counts as well: the budget is for the whole search.
    pub(crate) fn resume(&mut self, cost: f64) {
        self.started += 1;
        self.paid += 1;
        self.spent += cost;
    }

    /// A cell has ended.
    pub(crate) fn pay(&mut self, cost: f64) {
        self.running = self.running.saturating_sub(1);
        self.paid += 1;
        self.spent += cost;
    }

    pub(crate) fn stopped(&self) -> Option<Limit> {
        self.stopped
    }
}
