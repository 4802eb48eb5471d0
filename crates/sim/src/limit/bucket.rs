//! Token bucket that starts full and refills continuously, at a rate that may change at known times.

use super::{LimitLevel, wait_from_seconds};
use crate::latency::seconds;
use crate::{Rate, RateStep};
use std::time::Duration;

/// Tolerance for rounding errors in the sum of many small refills.
const ROUNDING: f64 = 1e-6;

/// State of a bucket. Only the bucket of requests has rate steps and foreign traffic.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    burst: f64,
    rate: f64,
    /// Requests per second of another tenant.
    foreign: f64,
    balance: f64,
    at: Duration,
    /// Future changes of the rate, the next one last.
    steps: Vec<(Duration, f64)>,
}

impl Bucket {
    pub(crate) fn new(rate: Rate, steps: &[RateStep], foreign: f64) -> Bucket {
        let steps = steps.iter().rev().map(|step| (seconds(step.at_s), step.requests_per_s));
        Bucket {
            burst: rate.burst,
            rate: rate.rate_per_s,
            foreign,
            balance: rate.burst,
            at: Duration::ZERO,
            steps: steps.collect(),
        }
    }

    /// Advances the bucket to `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some(&(at, rate)) = self.steps.last()
            && at <= now
        {
            self.refill(at);
            self.rate = rate;
            self.steps.pop();
        }
        self.refill(now);
    }

    fn refill(&mut self, now: Duration) {
        let gain = (self.rate - self.foreign) * now.saturating_sub(self.at).as_secs_f64();
        // ForeignTraffic traffic can empty the bucket, but not overdraw it.
        let floor = self.balance.min(0.0);
        self.balance = (self.balance + gain).clamp(floor, self.burst);
        self.at = self.at.max(now);
    }

    /// Whether the balance covers the cost. A cost above the bucket's size is admitted when the bucket
    /// is full and leaves a negative balance; otherwise it would never be admitted.
    pub(crate) fn fits(&self, cost: f64) -> bool {
        self.balance + ROUNDING >= cost.min(self.burst)
    }

    /// Charges an admitted request.
    pub(crate) fn take(&mut self, cost: f64) {
        self.balance -= cost;
    }

    /// Charges a failed request up to the balance, so that failures do not overdraw the bucket.
    pub(crate) fn charge_failure(&mut self, cost: f64) {
        self.balance = (self.balance - cost).max(self.balance.min(0.0));
    }

    /// Returns the time until the balance covers the cost, if only the other tenant sends requests;
    /// [`Duration::MAX`] for never.
    pub(crate) fn wait(&self, cost: f64) -> Duration {
        let mut future = self.clone();
        loop {
            if future.fits(cost) {
                return future.at.saturating_sub(self.at);
            }
            let missing = cost.min(future.burst) - future.balance;
            let gain = future.rate - future.foreign;
            let wait = if gain > 0.0 { wait_from_seconds(missing / gain) } else { Duration::MAX };
            let end = future.at.saturating_add(wait);
            match future.steps.last() {
                Some(&(at, _)) if at < end => future.advance(at),
                _ if wait == Duration::MAX => return wait,
                _ => return end.saturating_sub(self.at),
            }
        }
    }

    /// Returns the level for headers. The reset follows from the rounded remainder, as it does at the
    /// large providers (4999 of 5000 per minute: 12 ms), and ignores foreign traffic and future
    /// steps.
    pub(crate) fn level(&self) -> LimitLevel {
        let remaining = (self.balance + ROUNDING).floor().max(0.0);
        let missing = (self.burst - remaining).max(0.0);
        LimitLevel { limit: self.burst, remaining, reset: seconds(missing / self.rate) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate_per_s: f64, burst: f64) -> Bucket {
        Bucket::new(Rate { rate_per_s, burst }, &[], 0.0)
    }

    /// Returns the number of admitted requests when one arrives every millisecond.
    fn accepted(mut bucket: Bucket, until_s: u64) -> u64 {
        let mut accepted = 0;
        for ms in 0..until_s * 1000 {
            bucket.advance(Duration::from_millis(ms));
            if bucket.fits(1.0) {
                bucket.take(1.0);
                accepted += 1;
            }
        }
        accepted
    }

    #[test]
    fn bucket_starts_full_and_refills_continuously() {
        // 5 at time zero, and one each 200 ms: at 0.2, 0.4, … 59.8.
        assert_eq!(accepted(bucket(5.0, 5.0), 60), 5 + 299);
    }

    #[test]
    fn idle_bucket_holds_at_most_its_burst() {
        let mut bucket = bucket(5.0, 3.0);
        bucket.advance(Duration::from_secs(3600));
        let level = bucket.level();
        assert_eq!((level.limit, level.remaining, level.reset), (3.0, 3.0, Duration::ZERO));
    }

    #[test]
    fn steps_change_the_rate_and_the_wait() {
        let steps = [
            RateStep { at_s: 10.0, requests_per_s: 1.0 },
            RateStep { at_s: 20.0, requests_per_s: 4.0 },
        ];
        let rate = Rate { rate_per_s: 2.0, burst: 1.0 };
        // 1 + 20 until 10 s, 10 until 20 s, 40 until 30 s; the last is due at 30 s itself.
        assert_eq!(accepted(Bucket::new(rate, &steps, 0.0), 30), 1 + 20 + 10 + 39);
        let mut bucket = Bucket::new(Rate { rate_per_s: 0.01, burst: 1.0 }, &steps, 0.0);
        bucket.take(1.0);
        // 0.1 by 10 s, and 0.9 at one per second.
        assert_eq!(bucket.wait(1.0).as_millis(), 10_900);
    }

    #[test]
    fn foreign_traffic_reduces_the_rate() {
        let rate = Rate { rate_per_s: 5.0, burst: 1.0 };
        let taken = accepted(Bucket::new(rate, &[], 3.0), 100);
        assert!((199..=201).contains(&taken), "{taken}");
        // ForeignTraffic traffic above the rate empties the bucket without overdrawing it.
        let mut bucket = Bucket::new(rate, &[], 6.0);
        bucket.advance(Duration::from_secs(100));
        assert_eq!(bucket.level().remaining, 0.0);
        assert_eq!(bucket.balance, 0.0);
        assert_eq!(bucket.wait(1.0), Duration::MAX);
    }

    #[test]
    fn cost_above_the_burst_overdraws_the_bucket() {
        let mut bucket = bucket(10.0, 100.0);
        assert!(bucket.fits(250.0));
        bucket.take(250.0);
        assert_eq!(bucket.wait(1.0).as_millis(), 15_100);
        bucket.advance(Duration::from_secs(24));
        assert!(!bucket.fits(250.0));
        bucket.advance(Duration::from_secs(25));
        assert!(bucket.fits(250.0));
    }

    #[test]
    fn window_length_follows_from_the_reset() {
        let mut bucket = bucket(5000.0 / 60.0, 5000.0);
        bucket.take(1.0);
        let LimitLevel { limit, remaining, reset } = bucket.level();
        assert_eq!((limit, remaining), (5000.0, 4999.0));
        let window = reset.as_secs_f64() * limit / (limit - remaining);
        assert!((window - 60.0).abs() < 1e-3, "{window}");
    }

    proptest! {
        #[test]
        fn wait_is_exact(
            rate in 0.01..100.0_f64,
            burst in 1.0..50.0_f64,
            taken in 0.0..1.0_f64,
            cost in 0.1..1.0_f64,
        ) {
            let mut bucket = bucket(rate, burst);
            bucket.take(burst * taken);
            let cost = burst * cost;
            let wait = bucket.wait(cost);
            // Slightly earlier, by more than the rounding tolerance.
            let mut early = bucket.clone();
            early.advance(wait.mul_f64(0.99).saturating_sub(seconds(2.0 * ROUNDING / rate)));
            prop_assert_eq!(early.fits(cost), wait.is_zero());
            bucket.advance(wait);
            prop_assert!(bucket.fits(cost));
        }
    }
}
