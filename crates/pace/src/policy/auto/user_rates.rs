//! Rates given by the user: requests are spread evenly, with bursts of at most a few seconds' worth.

use super::Rates;
use crate::{Dimension, TokenCost};

/// Maximum burst, in seconds of the rate, of requests and of tokens.
const REQUEST_BURST_S: f64 = 1.0;
const TOKEN_BURST_S: f64 = 10.0;

/// A token bucket for each rate.
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
        let rates = [
            (Dimension::Requests, rates.rpm),
            (Dimension::Tokens, rates.tpm),
            (Dimension::InputTokens, rates.itpm),
            (Dimension::OutputTokens, rates.otpm),
        ];
        let bucket = |(dimension, per_minute): (Dimension, Option<f64>)| {
            Some(RateBucket::new(dimension, per_minute?))
        };
        UserRates { buckets: rates.into_iter().filter_map(bucket).collect() }
    }

    /// Sets or replaces the rate of requests.
    pub(super) fn set_rpm(&mut self, now: f64, rpm: f64) {
        self.buckets.retain(|bucket| bucket.dimension != Dimension::Requests);
        let bucket = RateBucket::new(Dimension::Requests, rpm);
        self.buckets.push(RateBucket { balance: 1.0, at: now, ..bucket });
    }

    /// Returns when a request of that cost may be sent, and the dimension that delays it.
    pub(super) fn next_at(&mut self, now: f64, cost: TokenCost) -> (f64, Dimension) {
        let times = self.buckets.iter_mut().map(|one| (one.next_at(now, cost), one.dimension));
        times.fold(
            (now, Dimension::Requests),
            |one, other| if other.0 > one.0 { other } else { one },
        )
    }

    /// Returns the rate per minute in that dimension, rounded; 0 if there is none.
    pub(super) fn per_minute(&self, dimension: Dimension) -> u64 {
        let bucket = self.buckets.iter().find(|bucket| bucket.dimension == dimension);
        bucket.map_or(0, |bucket| (60.0 * bucket.rate).round() as u64)
    }

    pub(super) fn on_sent(&mut self, now: f64, cost: TokenCost) {
        for bucket in &mut self.buckets {
            bucket.refill(now);
            bucket.balance -= bucket.dimension.of(cost);
        }
    }

    /// Replaces the estimated cost of a request by its usage.
    pub(super) fn settle(&mut self, estimated: TokenCost, usage: TokenCost) {
        for bucket in &mut self.buckets {
            bucket.balance += bucket.dimension.of(estimated) - bucket.dimension.of(usage);
        }
    }
}

impl RateBucket {
    /// Creates a full bucket.
    fn new(dimension: Dimension, per_minute: f64) -> RateBucket {
        let rate = per_minute / 60.0;
        let seconds =
            if dimension == Dimension::Requests { REQUEST_BURST_S } else { TOKEN_BURST_S };
        let depth = (rate * seconds).max(1.0);
        RateBucket { dimension, rate, depth, balance: depth, at: 0.0 }
    }

    fn refill(&mut self, now: f64) {
        self.balance = (self.balance + self.rate * (now - self.at)).min(self.depth);
        self.at = now;
    }

    fn next_at(&mut self, now: f64, cost: TokenCost) -> f64 {
        self.refill(now);
        // A request larger than the bucket is sent when the bucket is full, and leaves a debt.
        let missing = self.dimension.of(cost).min(self.depth) - self.balance;
        if missing <= 1e-9 { now } else { now + missing / self.rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of requests sent in that time if one is always waiting.
    fn sends(mut buckets: UserRates, cost: TokenCost, seconds: f64) -> u32 {
        let (mut now, mut sends) = (0.0, 0);
        loop {
            now = buckets.next_at(now, cost).0;
            if now >= seconds {
                return sends;
            }
            buckets.on_sent(now, cost);
            sends += 1;
        }
    }

    #[test]
    fn requests_are_spread_evenly() {
        let rates = Rates { rpm: Some(300.0), ..Rates::default() };
        // Five at once, then one every 200 ms: at 0.2, 0.4, … 59.8.
        assert_eq!(sends(UserRates::new(rates), TokenCost::default(), 60.0), 5 + 299);
        let rates = Rates { rpm: Some(10.0), ..Rates::default() };
        assert_eq!(sends(UserRates::new(rates), TokenCost::default(), 60.0), 10);
    }

    #[test]
    fn tightest_dimension_decides() {
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
    fn oversized_request_waits_for_a_full_bucket_and_leaves_a_debt() {
        let mut buckets = UserRates::new(Rates { tpm: Some(6_000.0), ..Rates::default() });
        let oversized = TokenCost { input: 3_000, output: 0 };
        assert_eq!(buckets.next_at(0.0, oversized).0, 0.0);
        buckets.on_sent(0.0, oversized);
        // The bucket held 1 000 and refills 100 per second: 2 000 of debt, and 1 000 to fill it.
        assert_eq!(buckets.next_at(0.0, oversized).0, 30.0);
    }

    #[test]
    fn unused_tokens_are_refunded() {
        let mut buckets = UserRates::new(Rates { tpm: Some(6_000.0), ..Rates::default() });
        let guess = TokenCost { input: 500, output: 500 };
        buckets.on_sent(0.0, guess);
        assert_eq!(buckets.next_at(0.0, guess).0, 10.0);
        buckets.settle(guess, TokenCost { input: 500, output: 100 });
        assert_eq!(buckets.next_at(0.0, guess).0, 6.0);
    }
}
