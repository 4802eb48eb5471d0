//! How much money is left, with what is under way counted at what it is likely to cost.

use bakeoff_core::NanoDollars;

/// Money that may be spent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// No more than this; `None` for any amount.
    most: Option<NanoDollars>,
    spent: NanoDollars,
    /// What those under way were expected to cost.
    expected: NanoDollars,
    under_way: usize,
    /// What a request of earlier processes cost, on average.
    usual: NanoDollars,
    /// The most that a request has cost, as a multiple of what was expected of it.
    dearest: Option<f64>,
}

impl Budget {
    /// So much may be spent, of which so much has been, for so many requests.
    pub(super) fn new(most: Option<NanoDollars>, spent: NanoDollars, requests: u64) -> Budget {
        let requests = i64::try_from(requests).unwrap_or(i64::MAX);
        let usual = NanoDollars(spent.0.checked_div(requests).unwrap_or(0));
        Budget { most, spent, expected: NanoDollars(0), under_way: 0, usual, dearest: None }
    }

    /// Whether anything has to be expected at all.
    pub(super) fn is_bounded(&self) -> bool {
        self.most.is_some()
    }

    /// Whether a request that is expected to cost so much may start. The first goes alone, because
    /// nobody knows before how long replies are.
    pub(super) fn allows(&self, expected: NanoDollars) -> bool {
        let Some(most) = self.most else { return true };
        let likely = match self.dearest {
            Some(dearest) => dearest * (self.expected.0 as f64 + expected.0 as f64),
            None if expected.is_zero() => 0.0,
            None if self.under_way == 0 => expected.max(self.usual).0 as f64,
            None => return false,
        };
        self.spent.0 as f64 + likely <= most.0 as f64
    }

    /// A request starts.
    pub(super) fn start(&mut self, expected: NanoDollars) {
        self.under_way += 1;
        self.expected = self.expected.saturating_add(expected);
    }

    /// It came back. What came from the cache, or not at all, says nothing about what others cost.
    pub(super) fn end(&mut self, expected: NanoDollars, actual: NanoDollars) {
        self.under_way = self.under_way.saturating_sub(1);
        self.expected = NanoDollars(self.expected.0.saturating_sub(expected.0));
        self.spent = self.spent.saturating_add(actual);
        if !actual.is_zero() && !expected.is_zero() {
            let multiple = actual.0 as f64 / expected.0 as f64;
            self.dearest = Some(self.dearest.unwrap_or_default().max(multiple));
        }
    }

    /// Whether more has been spent than may be.
    pub(super) fn is_exceeded(&self) -> bool {
        self.most.is_some_and(|most| self.spent > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: NanoDollars = NanoDollars(10);

    #[test]
    fn what_is_under_way_counts_at_what_it_is_likely_to_cost() {
        let mut budget = Budget::new(Some(NanoDollars(100)), NanoDollars(20), 10);
        assert!(budget.allows(TEN));
        budget.start(TEN);
        assert!(!budget.allows(NanoDollars(1)), "nobody knows yet what requests cost");
        assert!(budget.allows(NanoDollars(0)), "what is free is free");
        // It cost half as much as expected.
        budget.end(TEN, NanoDollars(5));
        assert!(budget.allows(NanoDollars(150)) && !budget.allows(NanoDollars(151)));
        budget.start(NanoDollars(100));
        assert!(budget.allows(NanoDollars(50)) && !budget.allows(NanoDollars(51)));
        // From the cache: others cost no less for that.
        budget.end(NanoDollars(100), NanoDollars(0));
        assert!(!budget.allows(NanoDollars(151)));
        // Three times as much as expected: so may the next.
        budget.start(TEN);
        budget.end(TEN, NanoDollars(30));
        assert!(budget.allows(NanoDollars(15)) && !budget.allows(NanoDollars(16)));
        budget.start(TEN);
        budget.end(TEN, NanoDollars(60));
        assert!(budget.is_exceeded() && !budget.allows(NanoDollars(0)));
    }

    #[test]
    fn the_first_is_taken_at_its_word_and_without_a_bound_everything_goes() {
        let budget = Budget::new(Some(TEN), NanoDollars(0), 0);
        assert!(budget.allows(TEN) && !budget.allows(NanoDollars(11)));
        // What requests cost before, they may cost again.
        let dear = Budget::new(Some(NanoDollars(100)), NanoDollars(90), 4);
        assert!(!dear.allows(TEN));
        let mut free = Budget::new(None, NanoDollars(i64::MAX), 1);
        free.start(NanoDollars(i64::MAX));
        assert!(free.allows(NanoDollars(i64::MAX)) && !free.is_exceeded() && !free.is_bounded());
    }
}
