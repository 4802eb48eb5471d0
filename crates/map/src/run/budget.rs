//! How much money is left, with what is under way counted at what it is likely to cost.

use bakeoff_core::NanoDollars;

/// How much more than expected requests are taken to cost before the first has come back.
const CAUTION: f64 = 2.0;

/// How much more than those before it a request is taken to cost.
const MARGIN: f64 = 1.1;

/// Money that may be spent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// No more than this; `None` for any amount.
    most: Option<NanoDollars>,
    spent: NanoDollars,
    /// What those under way were expected to cost.
    expected: NanoDollars,
    under_way: usize,
    /// What those that came back were expected to cost, and what they did cost.
    returned: (i64, i64),
}

impl Budget {
    /// So much may be spent, of which so much has been.
    pub(super) fn new(most: Option<NanoDollars>, spent: NanoDollars) -> Budget {
        let (expected, under_way, returned) = (NanoDollars(0), 0, (0, 0));
        Budget { most, spent, expected, under_way, returned }
    }

    /// Whether anything has to be expected at all.
    pub(super) fn is_bounded(&self) -> bool {
        self.most.is_some()
    }

    /// Whether a request that is expected to cost so much may start.
    pub(super) fn allows(&self, expected: NanoDollars) -> bool {
        let Some(most) = self.most else { return true };
        let scale = match self.returned {
            (1.., actual @ 1..) => MARGIN * actual as f64 / self.returned.0 as f64,
            // One alone tells what the others cost.
            _ if self.under_way == 0 => 1.0,
            _ => CAUTION,
        };
        let likely = scale * (self.expected.0 as f64 + expected.0 as f64);
        self.spent.0 as f64 + likely <= most.0 as f64
    }

    /// A request starts.
    pub(super) fn start(&mut self, expected: NanoDollars) {
        self.under_way += 1;
        self.expected = self.expected.saturating_add(expected);
    }

    /// It came back. What came from the cache says nothing about what others will cost.
    pub(super) fn end(&mut self, expected: NanoDollars, actual: NanoDollars) {
        self.under_way = self.under_way.saturating_sub(1);
        self.expected = NanoDollars(self.expected.0.saturating_sub(expected.0));
        self.spent = self.spent.saturating_add(actual);
        if !actual.is_zero() {
            self.returned.0 = self.returned.0.saturating_add(expected.0);
            self.returned.1 = self.returned.1.saturating_add(actual.0);
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
        let mut budget = Budget::new(Some(NanoDollars(100)), NanoDollars(20));
        // At double their price four are 80.
        for _ in 0..4 {
            assert!(budget.allows(TEN));
            budget.start(TEN);
        }
        assert!(!budget.allows(TEN), "a fifth might be too much");
        // They cost half as much as expected: the other three and the next are likely to cost 22.
        budget.end(TEN, NanoDollars(5));
        assert!(budget.allows(NanoDollars(100)));
        assert!(!budget.allows(NanoDollars(110)));
        budget.start(NanoDollars(100));
        budget.end(NanoDollars(100), NanoDollars(70));
        assert!(!budget.is_exceeded());
        budget.end(TEN, TEN);
        assert!(budget.is_exceeded() && !budget.allows(NanoDollars(0)));
    }

    #[test]
    fn one_alone_is_taken_at_its_word_and_without_a_bound_everything_goes() {
        let budget = Budget::new(Some(TEN), NanoDollars(0));
        assert!(budget.allows(TEN) && !budget.allows(NanoDollars(11)));
        let mut free = Budget::new(None, NanoDollars(i64::MAX));
        free.start(NanoDollars(i64::MAX));
        assert!(free.allows(NanoDollars(i64::MAX)) && !free.is_exceeded() && !free.is_bounded());
    }
}
