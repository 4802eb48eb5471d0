//! Spending limits. Work reserves its estimated expense before it starts, and the difference to the actual one is
//! returned at its end, so that a budget holds at any concurrency.
//!
//! [`BudgetLedger`] is the pure rule, [`SharedBudget`] lets tasks wait for it.

mod ledger;
mod shared;

pub use ledger::{BudgetLedger, Denial, Expense, ExpenseEstimate, ExpenseLimit, LedgerEntry};
pub use shared::{BudgetExhausted, Reservation, SharedBudget};
