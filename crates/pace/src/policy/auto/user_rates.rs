//! Limits that the user has given: kept evenly, with what a few seconds bring as the most at once.

use super::Rates;
use crate::{Dimension, TokenCost};

/// Seconds whose requests may go out at once, and seconds whose tokens may.
const REQUEST_BURST_S: f64 = 1.0;
const TOKEN_BURST_S: f64 = 10.0;

#[derive(Debug)]
pub(super) struct UserRates {
    buckets: Vec<RateBucket>,
}

#[derive(Debug)]
struct RateBucket {
    dimension: Dimension,
    rate: f64,
    depth: f64,
    balance: f64,
    at: f64,
}

impl UserRates {
    pub(super) fn new(rates: Rates) -> UserRates {
        let given = [
            (Dimension::Requests, rates.rpm),
            (Dimension::Tokens, rates.tpm),
            (Dimension::InputTokens, rates.itpm),
            (Dimension::OutputTokens, rates.otpm),
        ];
        let bucket = |(dimension, per_minute): (Dimension, Option<f64>)| {
            let rate = per_minute? / 60.0;
            let seconds =
                if dimension == Dimension::Requests { REQUEST_BURST_S } else { TOKEN_BURST_S };
            let depth = (rate * seconds).max(1.0);
            Some(RateBucket { dimension, rate, depth, balance: depth, at: 0.0 })
        };
        UserRates { buckets: given.into_iter().filter_map(bucket).collect() }
    }

    /// When a request of that cost may go out.
    pub(super) fn next_at(&mut self, now: f64, cost: TokenCost) -> f64 {
        self.buckets.iter_mut().map(|bucket| bucket.next_at(now, cost)).fold(now, f64::max)
    }

    pub(super) fn on_sent(&mut self, now: f64, cost: TokenCost) {
        for bucket in &mut self.buckets {
            bucket.refill(now);
            bucket.balance -= bucket.dimension.of(cost);
        }
    }

    /// An answer shows what a request really cost.
    pub(super) fn settle(&mut self, estimated: TokenCost, usage: TokenCost) {
        for bucket in &mut self.buckets {
            bucket.balance += bucket.dimension.of(estimated) - bucket.dimension.of(usage);
        }
    }
}

impl RateBucket {
    fn refill(&mut self, now: f64) {
        self.balance = (self.balance + self.rate * (now - self.at)).min(self.depth);
        self.at = now;
    }

    fn next_at(&mut self, now: f64, cost: TokenCost) -> f64 {
        self.refill(now);
        // What is larger than the bucket goes out when it is full, and leaves a debt.
        let missing = self.dimension.of(cost).min(self.depth) - self.balance;
        if missing <= 1e-9 { now } else { now + missing / self.rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many requests go out within so many seconds when somebody always wants to.
    fn sends(mut given: UserRates, cost: TokenCost, seconds: f64) -> u32 {
        let (mut now, mut sends) = (0.0, 0);
        loop {
            now = given.next_at(now, cost);
            if now >= seconds {
                return sends;
            }
            given.on_sent(now, cost);
            sends += 1;
        }
    }

    #[test]
    fn requests_go_out_evenly() {
        let rates = Rates { rpm: Some(300.0), ..Rates::default() };
        // Five at once, and one each 200 ms: at 0.2, 0.4, … 59.8.
        assert_eq!(sends(UserRates::new(rates), TokenCost::default(), 60.0), 5 + 299);
        let rates = Rates { rpm: Some(10.0), ..Rates::default() };
        assert_eq!(sends(UserRates::new(rates), TokenCost::default(), 60.0), 10);
    }

    #[test]
    fn every_dimension_counts_and_the_tightest_decides() {
        let cost = TokenCost { input: 300, output: 100 };
        let base = Rates::default();
        for (rates, expected) in [
            (Rates { tpm: Some(24_000.0), ..base }, 10 + 60),
            (Rates { itpm: Some(18_000.0), ..base }, 10 + 60),
            (Rates { otpm: Some(6_000.0), ..base }, 10 + 60),
            (Rates { rpm: Some(30.0), otpm: Some(6_000.0), ..base }, 30),
        ] {
            let sent = sends(UserRates::new(rates), cost, 60.0);
            assert!(sent.abs_diff(expected) <= 1, "{rates:?}: {sent}");
        }
    }

    #[test]
    fn a_giant_waits_for_a_full_bucket_and_leaves_a_debt() {
        let mut given = UserRates::new(Rates { tpm: Some(6_000.0), ..Rates::default() });
        let giant = TokenCost { input: 3_000, output: 0 };
        assert_eq!(given.next_at(0.0, giant), 0.0);
        given.on_sent(0.0, giant);
        // 1 000 were there and 100 come each second: 2 000 of debt, and 1 000 for a full bucket.
        assert_eq!(given.next_at(0.0, giant), 30.0);
    }

    #[test]
    fn what_an_answer_did_not_use_is_there_again() {
        let mut given = UserRates::new(Rates { tpm: Some(6_000.0), ..Rates::default() });
        let guess = TokenCost { input: 500, output: 500 };
        given.on_sent(0.0, guess);
        assert_eq!(given.next_at(0.0, guess), 10.0);
        given.settle(guess, TokenCost { input: 500, output: 100 });
        assert_eq!(given.next_at(0.0, guess), 6.0);
    }
}
