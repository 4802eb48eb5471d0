//! What a provider lets through, and when.
//!
//! Each limiter is a small struct that is told the time; [`Limits`] is all of them together. What
//! a request is told about it is the business of `headers`.

mod bucket;
mod flight;
mod knee;
mod outage;
mod quota;
mod window;

pub(crate) use bucket::Bucket;
pub(crate) use flight::Flight;
pub(crate) use knee::slowdown;
pub(crate) use quota::Quota;
pub(crate) use window::Window;

use crate::Profile;
use crate::latency::seconds;
use outage::Outages;
use std::time::Duration;

/// All limits of a profile.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) requests: Option<Bucket>,
    pub(crate) tokens: Option<Bucket>,
    pub(crate) input: Option<Bucket>,
    pub(crate) output: Option<Bucket>,
    pub(crate) window: Option<Window>,
    pub(crate) quota: Option<Quota>,
    pub(crate) flight: Flight,
    concurrency: Option<u64>,
    outages: Outages,
}

/// What a request costs in tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// Why a request is not let through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Denial {
    /// Nothing works.
    Outage { status: u16 },
    /// The day's requests are used up.
    Quota,
    /// Too many at once or too much per time.
    Limited {
        /// What there is too much of.
        what: &'static str,
        /// Until it would be let through, if nobody else comes.
        wait: Duration,
        /// Until the limit is fully restored.
        full: Duration,
    },
}

/// The level of one limit, for headers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    /// The most there can be.
    pub(crate) limit: f64,
    /// What is left now, rounded down.
    pub(crate) remaining: f64,
    /// Until everything is there again.
    pub(crate) reset: Duration,
}

impl Limits {
    pub(crate) fn new(profile: &Profile) -> Limits {
        let foreign = profile.foreign.map_or(0.0, |foreign| foreign.requests_per_s);
        let bucket = |rate| Bucket::new(rate, &[], 0.0);
        Limits {
            requests: profile.requests.map(|rate| Bucket::new(rate, &profile.steps, foreign)),
            tokens: profile.tokens.map(bucket),
            input: profile.input_tokens_limit.map(bucket),
            output: profile.output_tokens_limit.map(bucket),
            window: profile.window.map(|window| Window::new(window, foreign)),
            quota: profile.daily_quota.map(Quota::new),
            flight: Flight::default(),
            concurrency: profile.concurrency,
            outages: Outages::new(&profile.outages),
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: Duration) {
        let buckets = [&mut self.requests, &mut self.tokens, &mut self.input, &mut self.output];
        for bucket in buckets.into_iter().flatten() {
            bucket.advance(now);
        }
        if let Some(window) = &mut self.window {
            window.advance(now);
        }
        if let Some(quota) = &mut self.quota {
            quota.advance(now);
        }
        self.flight.advance(now);
    }

    /// Whether a request would be let through; consumes nothing. Without a cost only those limits
    /// are asked that do not count tokens.
    pub(crate) fn check(&self, now: Duration, cost: Option<Cost>) -> Result<(), Denial> {
        if let Some(status) = self.outages.status(now) {
            return Err(Denial::Outage { status });
        }
        if self.quota.as_ref().is_some_and(Quota::is_empty) {
            return Err(Denial::Quota);
        }
        let mut denial = None;
        // The longest wait counts: the request goes through when all limits allow it.
        let mut deny = |what: &'static str, wait: Duration, full: Duration| match denial {
            Some(Denial::Limited { wait: longest, .. }) if longest >= wait => {}
            _ => denial = Some(Denial::Limited { what, wait, full }),
        };
        if let Some(next) = self.flight.next_end_at(self.concurrency) {
            let wait = next.saturating_sub(now);
            deny("concurrent requests", wait, wait);
        }
        if let Some(wait) = self.window.as_ref().and_then(Window::wait) {
            deny("requests", wait, wait);
        }
        let mut ask = |bucket: &Option<Bucket>, what, cost: f64| {
            if let Some(bucket) = bucket
                && !bucket.fits(cost)
            {
                deny(what, bucket.wait(cost), bucket.level().reset);
            }
        };
        ask(&self.requests, "requests", 1.0);
        if let Some(Cost { input, output }) = cost {
            ask(&self.tokens, "tokens", input as f64 + output as f64);
            ask(&self.input, "input tokens", input as f64);
            ask(&self.output, "output tokens", output as f64);
        }
        denial.map_or(Ok(()), Err)
    }

    /// Consumes what an admitted request costs.
    pub(crate) fn admit(&mut self, cost: Cost) {
        let Cost { input, output } = cost;
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
        if let Some(quota) = &mut self.quota {
            quota.take();
        }
    }

    /// Consumes what a failed request costs where failures count: a request, but no tokens, since
    /// none were read or written.
    pub(crate) fn charge_failure(&mut self) {
        if let Some(bucket) = &mut self.requests {
            bucket.waste(1.0);
        }
        if let Some(window) = &mut self.window {
            window.take();
        }
    }
}

/// Time from its number of seconds, at least the next nanosecond: a wait that is rounded down ends
/// too early.
fn wait_of(secs: f64) -> Duration {
    seconds(secs).saturating_add(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FixedWindow, Rate};

    const COST: Cost = Cost { input: 10, output: 20 };

    fn limited(denial: Result<(), Denial>) -> (&'static str, u64) {
        match denial {
            Err(Denial::Limited { what, wait, .. }) => (what, wait.as_millis() as u64),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_dimension_of_tokens_has_its_own_bucket() {
        let small = Some(Rate { rate_per_s: 1.0, burst: 10.0 });
        let base = Profile::default;
        for (profile, expected) in [
            (Profile { tokens: small, ..base() }, ("tokens", 10_000)),
            (Profile { input_tokens_limit: small, ..base() }, ("input tokens", 10_000)),
            (Profile { output_tokens_limit: small, ..base() }, ("output tokens", 20_000)),
        ] {
            let mut limits = Limits::new(&profile);
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
    fn the_longest_wait_counts() {
        let profile = Profile {
            requests: Some(Rate { rate_per_s: 0.5, burst: 1.0 }),
            window: Some(FixedWindow { requests: 1, seconds: 5.0, phase_s: 0.0 }),
            concurrency: Some(1),
            ..Profile::default()
        };
        let mut limits = Limits::new(&profile);
        limits.admit(COST);
        limits.flight.add(Duration::from_secs(1));
        assert_eq!(limited(limits.check(Duration::ZERO, None)), ("requests", 5000));
    }

    #[test]
    fn failures_cost_a_request_and_no_tokens() {
        let one = Some(Rate { rate_per_s: 1.0, burst: 1.0 });
        let mut limits = Limits::new(&Profile { requests: one, ..Profile::default() });
        limits.charge_failure();
        limits.charge_failure();
        assert_eq!(limited(limits.check(Duration::ZERO, None)), ("requests", 1000));
        let mut limits = Limits::new(&Profile { tokens: one, ..Profile::default() });
        limits.charge_failure();
        assert_eq!(limits.check(Duration::ZERO, Some(COST)), Ok(()));
    }
}
