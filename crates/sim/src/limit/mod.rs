//! Limits of a provider.
//!
//! Each limiter is a small struct that receives the time as an argument; [`ProviderLimits`] combines them.
//! Module `headers` writes the headers about them.

mod batching;
mod bucket;
mod cap;
mod flight;
mod knee;
mod outage;
mod quota;
mod sliding;
mod window;

pub use batching::BatchSlot;
pub(crate) use bucket::Bucket;
pub(crate) use flight::InFlight;
pub(crate) use knee::slowdown;
pub(crate) use quota::DailyQuota;
pub(crate) use sliding::SlidingLog;
pub(crate) use window::Window;

use crate::Profile;
use crate::latency::seconds;
use cap::Cap;
use outage::Outages;
use std::time::Duration;

/// All limits of a profile.
#[derive(Debug, Default)]
pub(crate) struct ProviderLimits {
    pub(crate) requests: Option<Bucket>,
    pub(crate) tokens: Option<Bucket>,
    pub(crate) input: Option<Bucket>,
    pub(crate) output: Option<Bucket>,
    pub(crate) window: Option<Window>,
    pub(crate) sliding: Option<SlidingLog>,
    pub(crate) quota: Option<DailyQuota>,
    pub(crate) flight: InFlight,
    cap: Cap,
    outages: Outages,
}

/// Tokens of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenCost {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// Reason for the rejection of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Denial {
    /// Outage of the provider.
    Outage { status: u16 },
    /// The daily quota is exhausted.
    Quota,
    /// Concurrency or rate limit.
    Limited {
        /// Name of the limited quantity.
        quantity: &'static str,
        /// Time until the request would be admitted, without other requests.
        wait: Duration,
        /// Time until the limit is fully restored.
        full: Duration,
    },
}

/// Level of one limit, for headers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LimitLevel {
    /// Maximum.
    pub(crate) limit: f64,
    /// Current remainder, rounded down.
    pub(crate) remaining: f64,
    /// Time until the limit is fully restored.
    pub(crate) reset: Duration,
}

impl ProviderLimits {
    pub(crate) fn new(profile: &Profile) -> ProviderLimits {
        let foreign = profile.foreign.map_or(0.0, |foreign| foreign.requests_per_s);
        let bucket = |rate| Bucket::new(rate, &[], 0.0);
        ProviderLimits {
            requests: profile.requests.map(|rate| Bucket::new(rate, &profile.steps, foreign)),
            tokens: profile.tokens.map(bucket),
            input: profile.input_tokens_limit.map(bucket),
            output: profile.output_tokens_limit.map(bucket),
            window: profile.window.map(|window| Window::new(window, foreign)),
            sliding: profile.sliding_window.map(SlidingLog::new),
            quota: profile.daily_quota.map(DailyQuota::new),
            flight: InFlight::new(profile.batching),
            cap: Cap::new(profile),
            outages: Outages::new(&profile.outages),
        }
    }

    /// Advances all limits to `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        let buckets = [&mut self.requests, &mut self.tokens, &mut self.input, &mut self.output];
        for bucket in buckets.into_iter().flatten() {
            bucket.advance(now);
        }
        if let Some(window) = &mut self.window {
            window.advance(now);
        }
        if let Some(sliding) = &mut self.sliding {
            sliding.advance(now);
        }
        if let Some(quota) = &mut self.quota {
            quota.advance(now);
        }
        self.cap.advance(now);
        self.flight.advance(now);
    }

    /// Checks whether a request would be admitted; consumes nothing. Without a cost the token limits
    /// are skipped.
    pub(crate) fn check(&self, now: Duration, cost: Option<TokenCost>) -> Result<(), Denial> {
        if let Some(status) = self.outages.status(now) {
            return Err(Denial::Outage { status });
        }
        if self.quota.as_ref().is_some_and(DailyQuota::is_empty) {
            return Err(Denial::Quota);
        }
        let mut denial = None;
        // The longest wait counts: a request is admitted when all limits permit it.
        let mut deny = |quantity: &'static str, wait: Duration, full: Duration| match denial {
            Some(Denial::Limited { wait: longest, .. }) if longest >= wait => {}
            _ => denial = Some(Denial::Limited { quantity, wait, full }),
        };
        if let Some(opens_at) = self.cap.opens_at(&self.flight) {
            let wait = opens_at.saturating_sub(now);
            deny("concurrent requests", wait, wait);
        }
        if let Some(wait) = self.window.as_ref().and_then(Window::wait) {
            deny("requests", wait, wait);
        }
        if let Some(sliding) = &self.sliding
            && let Some(wait) = sliding.wait()
        {
            deny("requests", wait, sliding.reset());
        }
        let mut check_bucket = |bucket: &Option<Bucket>, quantity, cost: f64| {
            if let Some(bucket) = bucket
                && !bucket.fits(cost)
            {
                deny(quantity, bucket.wait(cost), bucket.level().reset);
            }
        };
        check_bucket(&self.requests, "requests", 1.0);
        if let Some(TokenCost { input, output }) = cost {
            check_bucket(&self.tokens, "tokens", input as f64 + output as f64);
            check_bucket(&self.input, "input tokens", input as f64);
            check_bucket(&self.output, "output tokens", output as f64);
        }
        denial.map_or(Ok(()), Err)
    }

    /// Charges an admitted request.
    pub(crate) fn admit(&mut self, cost: TokenCost) {
        let TokenCost { input, output } = cost;
        let take = |bucket: &mut Option<Bucket>, cost: f64| {
            if let Some(bucket) = bucket {
                bucket.take(cost);
            }
        };
        take(&mut self.requests, 1.0);
        take(&mut self.tokens, input as f64 + output as f64);
        take(&mut self.input, input as f64);
        take(&mut self.output, output as f64);
        if let Some(window) = &mut self.window {
            window.take();
        }
        if let Some(sliding) = &mut self.sliding {
            sliding.take();
        }
        if let Some(quota) = &mut self.quota {
            quota.take();
        }
    }

    /// Charges a failed request, for profiles that charge failures: one request and no tokens, because
    /// none were processed.
    pub(crate) fn charge_failure(&mut self) {
        if let Some(bucket) = &mut self.requests {
            bucket.charge_failure(1.0);
        }
        if let Some(window) = &mut self.window {
            window.take();
        }
        if let Some(sliding) = &mut self.sliding {
            sliding.take();
        }
    }
}

/// Converts seconds to a wait, plus a nanosecond: a wait that is rounded down ends too early.
fn wait_from_seconds(secs: f64) -> Duration {
    seconds(secs).saturating_add(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FixedWindow, Rate};

    const COST: TokenCost = TokenCost { input: 10, output: 20 };

    fn limited(denial: Result<(), Denial>) -> (&'static str, u64) {
        match denial {
            Err(Denial::Limited { quantity, wait, .. }) => (quantity, wait.as_millis() as u64),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_token_dimension_has_its_own_bucket() {
        let small = Some(Rate { rate_per_s: 1.0, burst: 10.0 });
        let base = Profile::default;
        for (profile, expected) in [
            (Profile { tokens: small, ..base() }, ("tokens", 10_000)),
            (Profile { input_tokens_limit: small, ..base() }, ("input tokens", 10_000)),
            (Profile { output_tokens_limit: small, ..base() }, ("output tokens", 20_000)),
        ] {
            let mut limits = ProviderLimits::new(&profile);
            assert_eq!(limits.check(Duration::ZERO, Some(COST)), Ok(()));
            limits.admit(COST);
            assert_eq!(limits.check(Duration::ZERO, None), Ok(()));
            let denied = limited(limits.check(Duration::ZERO, Some(COST)));
            assert_eq!(denied.0, expected.0);
            let wait = Duration::from_millis(denied.1 + 1);
            limits.advance(wait);
            assert_eq!(limits.check(wait, Some(COST)), Ok(()), "{expected:?} after {wait:?}");
        }
    }

    #[test]
    fn longest_wait_is_reported() {
        let profile = Profile {
            requests: Some(Rate { rate_per_s: 0.5, burst: 1.0 }),
            window: Some(FixedWindow { requests: 1, seconds: 5.0, phase_s: 0.0 }),
            concurrency: Some(1),
            ..Profile::default()
        };
        let mut limits = ProviderLimits::new(&profile);
        limits.admit(COST);
        limits.flight.add(Duration::from_secs(1));
        assert_eq!(limited(limits.check(Duration::ZERO, None)), ("requests", 5000));
    }

    #[test]
    fn failures_charge_a_request_and_no_tokens() {
        let one = Some(Rate { rate_per_s: 1.0, burst: 1.0 });
        let mut limits = ProviderLimits::new(&Profile { requests: one, ..Profile::default() });
        limits.charge_failure();
        limits.charge_failure();
        assert_eq!(limited(limits.check(Duration::ZERO, None)), ("requests", 1000));
        let mut limits = ProviderLimits::new(&Profile { tokens: one, ..Profile::default() });
        limits.charge_failure();
        assert_eq!(limits.check(Duration::ZERO, Some(COST)), Ok(()));
    }
}
