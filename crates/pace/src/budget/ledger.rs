//! Which work may start within a budget, as a state machine without waiting.

use bakeoff_core::NanoDollars;
use std::collections::HashMap;

/// Unfinished work that may be in flight for each finished one of its kind. Until then, too few expenses are known
/// for a reservation to cover most of them; tripling per round trip costs little time.
const IN_FLIGHT_PER_FINISHED: u64 = 2;

/// An amount of money and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expense {
    /// Cost.
    pub cost: NanoDollars,
    /// Prompt and answer tokens.
    pub tokens: u64,
}

impl Expense {
    fn as_numbers(self) -> Numbers {
        Numbers([self.cost.0.max(0) as f64, self.tokens as f64])
    }
}

/// Expected expense of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpenseEstimate {
    /// Estimate, which is scaled by the accuracy of earlier ones.
    pub expense: Expense,
    /// Whether the work cannot exceed the estimate, or hardly.
    pub is_maximum: bool,
}

impl From<Expense> for ExpenseEstimate {
    fn from(expense: Expense) -> ExpenseEstimate {
        ExpenseEstimate { expense, is_maximum: false }
    }
}

/// Limits of a budget; each is optional.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpenseLimit {
    /// Maximum cost.
    pub cost: Option<NanoDollars>,
    /// Maximum number of tokens.
    pub tokens: Option<u64>,
}

impl ExpenseLimit {
    fn as_numbers(self) -> Numbers {
        let cost = self.cost.map_or(f64::INFINITY, |cost| cost.0 as f64);
        Numbers([cost, self.tokens.map_or(f64::INFINITY, |tokens| tokens as f64)])
    }
}

/// Cost in nano-dollars, and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Numbers([f64; 2]);

impl Numbers {
    fn zip(self, other: Numbers, combine: impl Fn(f64, f64) -> f64) -> Numbers {
        Numbers([combine(self.0[0], other.0[0]), combine(self.0[1], other.0[1])])
    }

    fn plus(self, other: Numbers) -> Numbers {
        self.zip(other, |one, two| one + two)
    }

    fn as_expense(self) -> Expense {
        let Numbers([cost, tokens]) = self;
        // The casts saturate.
        Expense { cost: NanoDollars(cost.round() as i64), tokens: tokens.round() as u64 }
    }

    fn exceeds(self, limit: Numbers) -> bool {
        self.0.iter().zip(limit.0).any(|(amount, limit)| *amount > limit)
    }
}

/// Why work may not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// Other work must finish first.
    Wait,
    /// The rest of the budget does not cover it.
    Exhausted,
}

/// Started work of a ledger; [`BudgetLedger::finish`] takes it back.
#[derive(Debug)]
#[must_use]
pub struct LedgerEntry {
    kind: String,
    estimate: Numbers,
    is_maximum: bool,
}

/// Expenses and reservations under a limit.
///
/// ```
/// use bakeoff_core::NanoDollars;
/// use bakeoff_pace::{BudgetLedger, Denial, Expense, ExpenseLimit};
///
/// let dollars = |dollars: i64| Expense { cost: NanoDollars(dollars * 1_000_000_000), tokens: 0 };
/// let limit = ExpenseLimit { cost: Some(dollars(10).cost), tokens: None };
/// let mut ledger = BudgetLedger::new(limit, Expense::default());
/// let first = ledger.start("model", dollars(2)).expect("it fits");
/// // The actual cost is not known yet.
/// assert_eq!(ledger.start("model", dollars(2)).unwrap_err(), Denial::Wait);
/// ledger.finish(first, Some(dollars(4)));
/// // Twice the estimate: the next call may cost as much.
/// assert_eq!(ledger.start("model", dollars(4)).unwrap_err(), Denial::Exhausted);
/// assert!(ledger.start("model", dollars(3)).is_ok());
/// ```
#[derive(Debug, Clone, Default)]
pub struct BudgetLedger {
    limit: ExpenseLimit,
    spent: Expense,
    kinds: HashMap<String, WorkKind>,
    is_closed: bool,
}

/// Work of one kind, for example the calls of a model.
#[derive(Debug, Clone, Copy, Default)]
struct WorkKind {
    in_flight: u64,
    /// Finished work with a known expense.
    finished: u64,
    /// Sum of the estimates of the work in flight, and the part of it that is a maximum.
    estimated: Numbers,
    maximum: Numbers,
    /// Largest ratio of an actual expense to its estimate.
    max_ratio: Numbers,
}

impl WorkKind {
    /// Returns what work with these estimates may cost.
    fn likely(&self, estimate: Numbers) -> Numbers {
        match self.finished {
            0 => estimate,
            _ => estimate.zip(self.max_ratio, |estimate, ratio| estimate * ratio),
        }
    }

    /// Returns what the work in flight may cost.
    fn reserved(&self) -> Numbers {
        let others = self.estimated.zip(self.maximum, |all, maximum| (all - maximum).max(0.0));
        self.likely(others).plus(self.likely(self.maximum).zip(self.maximum, f64::max))
    }

    /// Whether the work in flight is the first of its kind and can exceed its estimate.
    fn has_untested_estimate(&self) -> bool {
        self.finished == 0 && self.estimated != self.maximum
    }

    fn must_wait(&self) -> bool {
        self.in_flight >= (IN_FLIGHT_PER_FINISHED * self.finished).max(1)
    }
}

impl BudgetLedger {
    /// Creates a ledger of which `spent` was spent before.
    pub fn new(limit: ExpenseLimit, spent: Expense) -> BudgetLedger {
        BudgetLedger { limit, spent, ..BudgetLedger::default() }
    }

    /// Returns the limit.
    pub fn limit(&self) -> ExpenseLimit {
        self.limit
    }

    /// Returns the expenses so far.
    pub fn spent(&self) -> Expense {
        self.spent
    }

    /// Whether there is a limit, so that expenses must be estimated.
    pub fn is_limited(&self) -> bool {
        self.limit != ExpenseLimit::default()
    }

    /// Returns what work of this kind may cost, from its estimate and from the expenses of finished work.
    pub fn likely(&self, kind: &str, estimate: ExpenseEstimate) -> Expense {
        self.reservation(kind, estimate).as_expense()
    }

    fn reservation(&self, kind: &str, estimate: ExpenseEstimate) -> Numbers {
        let known = self.kinds.get(kind).copied().unwrap_or_default();
        let numbers = estimate.expense.as_numbers();
        match estimate.is_maximum {
            true => known.likely(numbers).zip(numbers, f64::max),
            false => known.likely(numbers),
        }
    }

    /// Starts work of a kind, for example a call of a model, if its likely expense fits.
    ///
    /// The first work of a kind runs alone, and without first work of other kinds, because no estimate of theirs has been
    /// tested: one wrong estimate may exceed the limit, several must not. Later work is expected to exceed its estimate by as much as any so
    /// far, and to reach its maximum if that is known. Unknown expenses have an arbitrary constant estimate. Work that
    /// is expected to cost nothing always starts.
    ///
    /// # Errors
    ///
    /// When it must wait for other work, or the rest of the budget does not cover it.
    pub fn start(
        &mut self,
        kind: &str,
        estimate: impl Into<ExpenseEstimate>,
    ) -> Result<LedgerEntry, Denial> {
        if self.is_closed {
            return Err(Denial::Exhausted);
        }
        let limit = self.limit.as_numbers();
        let ExpenseEstimate { expense, is_maximum } = estimate.into();
        let reservation = self.reservation(kind, ExpenseEstimate { expense, is_maximum });
        let estimate = expense.as_numbers();
        let known = self.kinds.get(kind).copied().unwrap_or_default();
        let is_free = estimate
            .zip(limit, |estimate, limit| if limit.is_finite() { estimate } else { 0.0 })
            == Numbers::default();
        if self.is_limited() && !is_free {
            let committed = self.spent.as_numbers().plus(reservation);
            if committed.exceeds(limit) {
                return Err(Denial::Exhausted);
            }
            let is_untested = known.finished == 0 && !is_maximum;
            let has_untested = self.kinds.values().any(WorkKind::has_untested_estimate);
            if known.must_wait()
                || (is_untested && has_untested)
                || committed.plus(self.reserved()).exceeds(limit)
            {
                return Err(Denial::Wait);
            }
        }
        let work = self.kinds.entry(kind.to_owned()).or_default();
        work.in_flight += 1;
        work.estimated = work.estimated.plus(estimate);
        if is_maximum {
            work.maximum = work.maximum.plus(estimate);
        }
        Ok(LedgerEntry { kind: kind.to_owned(), estimate, is_maximum })
    }

    /// Denies all further work.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Records the end of work and its actual expense; `None` if it had none, for example because a call failed.
    pub fn finish(&mut self, entry: LedgerEntry, actual: Option<Expense>) {
        let LedgerEntry { kind, estimate, is_maximum } = entry;
        let work = self.kinds.entry(kind).or_default();
        work.in_flight = work.in_flight.saturating_sub(1);
        let remove = |sum: Numbers| match work.in_flight {
            // Rounding errors do not add up.
            0 => Numbers::default(),
            _ => sum.zip(estimate, |sum, estimate| (sum - estimate).max(0.0)),
        };
        work.estimated = remove(work.estimated);
        if is_maximum {
            work.maximum = remove(work.maximum);
        }
        let Some(actual) = actual else { return };
        let ratio = actual
            .as_numbers()
            .zip(estimate, |actual, estimate| if estimate > 0.0 { actual / estimate } else { 0.0 });
        work.finished += 1;
        work.max_ratio = work.max_ratio.zip(ratio, f64::max);
        self.spend(actual);
    }

    /// Records the end of work that gave no result but probably had the likely expense, and returns this expense.
    pub fn forfeit(&mut self, entry: LedgerEntry) -> Expense {
        let work = self.kinds.get(&entry.kind).copied().unwrap_or_default();
        let likely = work.likely(entry.estimate).as_expense();
        self.spend(likely);
        self.finish(entry, None);
        likely
    }

    /// Records an expense of work that was not started as such.
    pub fn spend(&mut self, expense: Expense) {
        self.spent.cost = self.spent.cost.saturating_add(expense.cost);
        self.spent.tokens = self.spent.tokens.saturating_add(expense.tokens);
    }

    /// Whether more than the limit is spent.
    pub fn is_exceeded(&self) -> bool {
        self.spent.as_numbers().exceeds(self.limit.as_numbers())
    }

    /// Returns the likely expense of all work in flight.
    fn reserved(&self) -> Numbers {
        let all = self.kinds.values().map(WorkKind::reserved);
        all.fold(Numbers::default(), Numbers::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(nano: i64) -> Expense {
        Expense { cost: NanoDollars(nano), tokens: 0 }
    }

    fn ledger(limit: i64, spent: i64) -> BudgetLedger {
        let limit = ExpenseLimit { cost: Some(NanoDollars(limit)), tokens: None };
        BudgetLedger::new(limit, cost(spent))
    }

    #[test]
    fn in_flight_work_grows_with_finished_work() {
        let mut ledger = ledger(1000, 0);
        for expected in [1, 2, 6, 18] {
            let mut entries = Vec::new();
            let denial = loop {
                match ledger.start("a", cost(10)) {
                    Ok(entry) => entries.push(entry),
                    Err(denial) => break denial,
                }
            };
            assert_eq!((entries.len(), denial), (expected, Denial::Wait));
            for entry in entries {
                ledger.finish(entry, Some(cost(10)));
            }
        }
    }

    #[test]
    fn estimates_scale_with_the_largest_ratio_of_the_kind() {
        let mut ledger = ledger(100, 20);
        let entry = ledger.start("a", cost(10)).unwrap();
        ledger.finish(entry, Some(cost(5)));
        let entry = ledger.start("a", cost(10)).unwrap();
        ledger.finish(entry, Some(cost(20)));
        assert_eq!((ledger.spent(), ledger.likely("a", cost(10).into())), (cost(45), cost(20)));
        assert_eq!(ledger.likely("b", cost(10).into()), cost(10), "another kind");
        assert_eq!(ledger.start("a", cost(28)).unwrap_err(), Denial::Exhausted);
        assert!(ledger.start("a", cost(27)).is_ok());
    }

    #[test]
    fn first_work_of_several_kinds_runs_one_after_the_other() {
        let mut ledger = ledger(100, 0);
        let first = ledger.start("a", cost(1)).unwrap();
        assert_eq!(ledger.start("b", cost(1)).unwrap_err(), Denial::Wait);
        let known = ExpenseEstimate { expense: cost(2), is_maximum: true };
        let maximum = ledger.start("c", known).expect("it cannot exceed its estimate");
        ledger.finish(first, Some(cost(90)));
        let second = ledger.start("b", cost(1)).expect("it fits into what is left");
        assert!(ledger.start("a", cost(1)).is_err(), "as expensive as the first");
        ledger.finish(second, Some(cost(20)));
        ledger.finish(maximum, Some(cost(2)));
        assert_eq!(ledger.start("d", cost(1)).unwrap_err(), Denial::Exhausted);
    }

    #[test]
    fn known_maximum_is_reserved() {
        let mut ledger = ledger(100, 0);
        let maximum = ExpenseEstimate { expense: cost(40), is_maximum: true };
        let entry = ledger.start("a", maximum).unwrap();
        ledger.finish(entry, Some(cost(10)));
        // In flight, each counts 40, although 10 is likely.
        let first = ledger.start("a", maximum).unwrap();
        let second = ledger.start("a", maximum).unwrap();
        ledger.finish(second, None);
        let second = ledger.start("a", cost(40)).unwrap();
        ledger.finish(first, Some(cost(30)));
        ledger.finish(second, Some(cost(30)));
        assert_eq!((ledger.spent(), ledger.likely("a", cost(40).into())), (cost(70), cost(30)));
        assert_eq!(ledger.start("a", maximum).unwrap_err(), Denial::Exhausted);
        assert!(ledger.start("a", cost(40)).is_ok());
    }

    #[test]
    fn reservations_of_all_kinds_count() {
        let mut ledger = ledger(100, 0);
        let first = ledger.start("a", cost(60)).unwrap();
        assert_eq!(ledger.start("b", cost(50)).unwrap_err(), Denial::Wait);
        ledger.finish(first, None);
        assert!(ledger.start("b", cost(50)).is_ok());
        assert!(ledger.start("free", cost(0)).is_ok());
    }

    #[test]
    fn failures_do_not_teach_a_ratio() {
        let mut ledger = ledger(100, 0);
        let entry = ledger.start("a", cost(10)).unwrap();
        ledger.finish(entry, None);
        let _entry = ledger.start("a", cost(10)).unwrap();
        assert_eq!(ledger.start("a", cost(10)).unwrap_err(), Denial::Wait, "still the first");
    }

    #[test]
    fn forfeited_work_counts_at_its_likely_expense() {
        let mut ledger = ledger(100, 0);
        let entry = ledger.start("a", cost(10)).unwrap();
        ledger.finish(entry, Some(cost(20)));
        let entry = ledger.start("a", cost(30)).unwrap();
        ledger.forfeit(entry);
        assert_eq!(ledger.spent(), cost(80));
    }

    #[test]
    fn tokens_are_limited_like_costs() {
        let limit = ExpenseLimit { cost: None, tokens: Some(100) };
        let mut ledger = BudgetLedger::new(limit, Expense::default());
        let expense = |tokens| Expense { cost: NanoDollars(7), tokens };
        assert_eq!(ledger.start("a", expense(101)).unwrap_err(), Denial::Exhausted);
        let entry = ledger.start("a", expense(100)).unwrap();
        ledger.finish(entry, Some(expense(110)));
        assert!(ledger.is_exceeded());
        assert_eq!(ledger.start("a", expense(1)).unwrap_err(), Denial::Exhausted);
    }

    #[test]
    fn nothing_is_denied_without_a_limit() {
        let mut ledger = BudgetLedger::default();
        let entries: Vec<_> =
            (0..100).map(|_| ledger.start("a", cost(i64::MAX)).unwrap()).collect();
        assert!(!ledger.is_limited() && !ledger.is_exceeded() && entries.len() == 100);
    }
}
