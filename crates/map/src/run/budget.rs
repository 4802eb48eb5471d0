//! Cost limit of a job. Requests in flight count at their likely cost.

use bakeoff_core::NanoDollars;

/// Money spent and reserved, and the limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostBudget {
    /// Cost limit; `None` for no limit.
    max: Option<NanoDollars>,
    spent: NanoDollars,
    /// Estimated cost of the requests in flight.
    reserved: NanoDollars,
    in_flight: usize,
    /// Average cost of a request in earlier processes.
    average: NanoDollars,
    /// Highest ratio of actual to estimated cost of a request.
    max_ratio: Option<f64>,
}

impl CostBudget {
    /// Creates a budget of which earlier processes spent `spent` on `requests` requests.
    pub(super) fn new(max: Option<NanoDollars>, spent: NanoDollars, requests: u64) -> CostBudget {
        let requests = i64::try_from(requests).unwrap_or(i64::MAX);
        let average = NanoDollars(spent.0.checked_div(requests).unwrap_or(0));
        CostBudget { max, spent, reserved: NanoDollars(0), in_flight: 0, average, max_ratio: None }
    }

    /// Returns whether there is a limit, so that costs have to be estimated.
    pub(super) fn is_limited(&self) -> bool {
        self.max.is_some()
    }

    /// Returns whether a request of this estimated cost may start. The first request runs alone,
    /// because the length of replies is not known before.
    pub(super) fn allows(&self, estimate: NanoDollars) -> bool {
        let Some(max) = self.max else { return true };
        let likely = match self.max_ratio {
            Some(ratio) => ratio * (self.reserved.0 as f64 + estimate.0 as f64),
            None if estimate.is_zero() => 0.0,
            None if self.in_flight == 0 => estimate.max(self.average).0 as f64,
            None => return false,
        };
        self.spent.0 as f64 + likely <= max.0 as f64
    }

    /// Records the start of a request.
    pub(super) fn start(&mut self, estimate: NanoDollars) {
        self.in_flight += 1;
        self.reserved = self.reserved.saturating_add(estimate);
    }

    /// Records the end of a request. Cached responses and failures cost nothing and do not change the ratio.
    pub(super) fn end(&mut self, estimate: NanoDollars, actual: NanoDollars) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.reserved = NanoDollars(self.reserved.0.saturating_sub(estimate.0));
        self.spent = self.spent.saturating_add(actual);
        if !actual.is_zero() && !estimate.is_zero() {
            let ratio = actual.0 as f64 / estimate.0 as f64;
            self.max_ratio = Some(self.max_ratio.unwrap_or_default().max(ratio));
        }
    }

    /// Returns whether the limit is exceeded.
    pub(super) fn is_exceeded(&self) -> bool {
        self.max.is_some_and(|max| self.spent > max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: NanoDollars = NanoDollars(10);

    #[test]
    fn requests_in_flight_count_at_their_likely_cost() {
        let mut budget = CostBudget::new(Some(NanoDollars(100)), NanoDollars(20), 10);
        assert!(budget.allows(TEN));
        budget.start(TEN);
        assert!(!budget.allows(NanoDollars(1)), "the cost of a request is not known yet");
        assert!(budget.allows(NanoDollars(0)), "free requests are not limited");
        // Half of the estimate.
        budget.end(TEN, NanoDollars(5));
        assert!(budget.allows(NanoDollars(150)) && !budget.allows(NanoDollars(151)));
        budget.start(NanoDollars(100));
        assert!(budget.allows(NanoDollars(50)) && !budget.allows(NanoDollars(51)));
        // A cached response does not change the ratio.
        budget.end(NanoDollars(100), NanoDollars(0));
        assert!(!budget.allows(NanoDollars(151)));
        // Three times the estimate: the next request may cost as much.
        budget.start(TEN);
        budget.end(TEN, NanoDollars(30));
        assert!(budget.allows(NanoDollars(15)) && !budget.allows(NanoDollars(16)));
        budget.start(TEN);
        budget.end(TEN, NanoDollars(60));
        assert!(budget.is_exceeded() && !budget.allows(NanoDollars(0)));
    }

    #[test]
    fn first_request_counts_at_its_estimate_or_the_earlier_average() {
        let budget = CostBudget::new(Some(TEN), NanoDollars(0), 0);
        assert!(budget.allows(TEN) && !budget.allows(NanoDollars(11)));
        let expensive = CostBudget::new(Some(NanoDollars(100)), NanoDollars(90), 4);
        assert!(!expensive.allows(TEN));
        let mut unlimited = CostBudget::new(None, NanoDollars(i64::MAX), 1);
        unlimited.start(NanoDollars(i64::MAX));
        assert!(unlimited.allows(NanoDollars(i64::MAX)));
        assert!(!unlimited.is_exceeded() && !unlimited.is_limited());
    }
}
