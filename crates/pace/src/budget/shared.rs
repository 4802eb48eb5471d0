//! A budget that concurrent tasks share.

use super::ledger::{BudgetLedger, Denial, Expense, ExpenseEstimate, ExpenseLimit, LedgerEntry};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;

/// A budget shared by tasks. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SharedBudget {
    state: Arc<BudgetState>,
}

#[derive(Debug, Default)]
struct BudgetState {
    ledger: Mutex<BudgetLedger>,
    /// Notified when work finishes.
    finished: Notify,
    exhausted: OnceLock<BudgetExhausted>,
}

/// Work was denied because the budget is exhausted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the budget is exhausted: {reason}")]
pub struct BudgetExhausted {
    /// Which limit was reached: "$0.95 of $1.00 spent, and the next call may cost $0.20".
    pub reason: String,
}

/// Describes why work with this likely expense does not fit.
fn reason(spent: Expense, likely: Expense, limit: ExpenseLimit) -> String {
    let cost = limit.cost.filter(|max| spent.cost.saturating_add(likely.cost) > *max);
    match (cost, limit.tokens) {
        (Some(max), _) if spent.cost >= max => format!("{} of {max} spent", spent.cost),
        (Some(max), _) => {
            format!("{} of {max} spent, and the next call may cost {}", spent.cost, likely.cost)
        }
        (None, Some(max)) if spent.tokens < max => format!(
            "{} of {max} tokens used, and the next call may use {}",
            spent.tokens, likely.tokens
        ),
        (None, max) => format!("{} of {} tokens used", spent.tokens, max.unwrap_or(spent.tokens)),
    }
}

impl SharedBudget {
    /// Creates a budget of which `spent` was spent before.
    pub fn new(limit: ExpenseLimit, spent: Expense) -> SharedBudget {
        let ledger = Mutex::new(BudgetLedger::new(limit, spent));
        SharedBudget { state: Arc::new(BudgetState { ledger, ..BudgetState::default() }) }
    }

    /// Returns the limit.
    pub fn limit(&self) -> ExpenseLimit {
        self.ledger().limit()
    }

    /// Returns the expenses so far.
    pub fn spent(&self) -> Expense {
        self.ledger().spent()
    }

    /// Returns why work was denied for the first time.
    pub fn exhausted(&self) -> Option<&BudgetExhausted> {
        self.state.exhausted.get()
    }

    /// Denies all further work, for example because an expense is unknown.
    pub fn close(&self, reason: String) {
        self.state.exhausted.get_or_init(|| BudgetExhausted { reason });
        self.ledger().close();
        self.state.finished.notify_waiters();
    }

    /// Waits until work of this kind may start ([`BudgetLedger::start`]).
    ///
    /// # Errors
    ///
    /// When the rest of the budget does not cover it.
    pub async fn reserve(
        &self,
        kind: &str,
        estimate: impl Into<ExpenseEstimate>,
    ) -> Result<Reservation, BudgetExhausted> {
        let estimate = estimate.into();
        loop {
            let mut finished = pin!(self.state.finished.notified());
            // Work that finishes from here on ends the wait.
            finished.as_mut().enable();
            match self.try_reserve(kind, estimate) {
                Ok(entry) => {
                    return Ok(Reservation { budget: self.clone(), entry: Some(entry) });
                }
                Err(Some(exhausted)) => {
                    return Err(self.state.exhausted.get_or_init(|| exhausted).clone());
                }
                Err(None) => finished.await,
            }
        }
    }

    /// Returns the reason if the budget is exhausted; `None` if other work must finish first.
    fn try_reserve(
        &self,
        kind: &str,
        estimate: ExpenseEstimate,
    ) -> Result<LedgerEntry, Option<BudgetExhausted>> {
        let mut ledger = self.ledger();
        ledger.start(kind, estimate).map_err(|denial| match denial {
            Denial::Wait => None,
            Denial::Exhausted => {
                let likely = ledger.likely(kind, estimate);
                let reason = reason(ledger.spent(), likely, ledger.limit());
                Some(BudgetExhausted { reason })
            }
        })
    }

    fn finish(&self, entry: LedgerEntry, actual: Option<Expense>) {
        self.ledger().finish(entry, actual);
        self.state.finished.notify_waiters();
    }

    fn ledger(&self) -> MutexGuard<'_, BudgetLedger> {
        self.state.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reserved part of a budget. Dropping it returns the reservation: the work had no expense.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    budget: SharedBudget,
    /// Absent once the work has finished.
    entry: Option<LedgerEntry>,
}

impl Reservation {
    /// Returns the reservation and records the actual expense.
    pub fn finish(mut self, actual: Expense) {
        if let Some(entry) = self.entry.take() {
            self.budget.finish(entry, Some(actual));
        }
    }

    /// Records that the work probably had its likely expense, although it gave no result. Returns this expense.
    pub fn forfeit(mut self) -> Expense {
        let Some(entry) = self.entry.take() else { return Expense::default() };
        let likely = self.budget.ledger().forfeit(entry);
        self.budget.state.finished.notify_waiters();
        likely
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.budget.finish(entry, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_core::NanoDollars;
    use std::time::Duration;
    use tokio::task::JoinSet;

    fn cost(nano: i64) -> Expense {
        Expense { cost: NanoDollars(nano), tokens: 0 }
    }

    fn budget(limit: i64) -> SharedBudget {
        let limit = ExpenseLimit { cost: Some(NanoDollars(limit)), tokens: None };
        SharedBudget::new(limit, Expense::default())
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_work_stays_within_the_budget() {
        let budget = budget(1000);
        let mut tasks = JoinSet::new();
        for number in 0..200 {
            let budget = budget.clone();
            tasks.spawn(async move {
                let Ok(reservation) = budget.reserve("model", cost(10)).await else { return 0 };
                tokio::time::sleep(Duration::from_secs(1)).await;
                let actual = 20 + number % 5;
                reservation.finish(cost(actual));
                actual
            });
        }
        let spent: i64 = tasks.join_all().await.iter().sum();
        assert_eq!(budget.spent(), cost(spent));
        assert!((960..=1000).contains(&spent), "{spent}");
        assert!(budget.exhausted().is_some());
    }

    #[tokio::test]
    async fn dropped_reservation_is_returned() {
        let budget = budget(10);
        drop(budget.reserve("model", cost(10)).await);
        let forfeited = budget.reserve("model", cost(10)).await.expect("it fits");
        forfeited.forfeit();
        assert!(budget.reserve("model", cost(1)).await.is_err());
        assert_eq!(budget.spent(), cost(10));
    }

    #[tokio::test(start_paused = true)]
    async fn closed_budget_denies_waiting_work() {
        let budget = budget(10);
        let first = budget.reserve("model", cost(1)).await;
        let waiting = budget.reserve("model", cost(1));
        let (denied, ()) = tokio::join!(waiting, async { budget.close("no price".to_owned()) });
        assert_eq!(denied.unwrap_err().reason, "no price");
        drop(first);
    }

    #[test]
    fn reason_names_the_limit() {
        let dollars = |dollars: f64| NanoDollars((dollars * 1e9) as i64);
        let reason = |spent: f64, likely: f64| {
            let limit = ExpenseLimit { cost: Some(dollars(1.0)), tokens: Some(10) };
            let spent = Expense { cost: dollars(spent), tokens: 8 };
            let likely = Expense { cost: dollars(likely), tokens: 5 };
            super::reason(spent, likely, limit)
        };
        assert_eq!(reason(0.9, 0.2), "$0.90 of $1.00 spent, and the next call may cost $0.20");
        assert_eq!(reason(1.5, 0.2), "$1.50 of $1.00 spent");
        assert_eq!(reason(0.1, 0.2), "8 of 10 tokens used, and the next call may use 5");
    }
}
