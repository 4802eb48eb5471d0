//! `reactive`: sends at once, and retries a rejected request when the minute is over.
//!
//! It needs no information about the provider: most quotas are per minute, so a rejected request may
//! succeed when the oldest request of the last minute no longer counts. A margin covers the time until
//! that request arrived at the provider.

use super::proactive::ARRIVAL_MARGIN;
use crate::{BindingLimit, Flight, Gate, Policy, PoolView, RetryMode, SendOutcome, TokenCost};
use std::collections::VecDeque;
use std::time::Duration;

/// A minute, and the maximum time until a request arrives at the provider.
const MINUTE: Duration = Duration::from_secs(60).saturating_add(ARRIVAL_MARGIN);

/// The strategy `reactive`.
#[derive(Debug, Clone)]
pub struct ReactivePolicy {
    connections: u32,
    /// Send times, the oldest first: those of the last minute and possibly older ones.
    sent: VecDeque<Duration>,
}

impl ReactivePolicy {
    /// Creates the strategy with that many requests in flight, at least one, or without a limit.
    pub fn new(connections: Option<u32>) -> ReactivePolicy {
        let connections = connections.map_or(u32::MAX, |connections| connections.max(1));
        ReactivePolicy { connections, sent: VecDeque::new() }
    }
}

impl Policy for ReactivePolicy {
    fn gate(&mut self, view: PoolView, _cost: TokenCost) -> Gate {
        if view.in_flight < self.connections { Gate::Open } else { Gate::Closed }
    }

    fn on_sent(&mut self, view: PoolView, _flight: Flight, _cost: TokenCost) {
        while self.sent.front().is_some_and(|sent| *sent + MINUTE <= view.now) {
            self.sent.pop_front();
        }
        // Only the oldest matters, so one entry is enough for requests sent at the same time.
        if self.sent.back() != Some(&view.now) {
            self.sent.push_back(view.now);
        }
    }

    fn on_ended(
        &mut self,
        _view: PoolView,
        _flight: Flight,
        _cost: TokenCost,
        _ending: &SendOutcome,
    ) {
    }

    /// Waits in full and without jitter: an earlier request would be rejected again.
    fn retry_mode(&self, now: Duration) -> RetryMode {
        let expired = self.sent.partition_point(|sent| *sent + MINUTE <= now);
        let oldest = self.sent.get(expired);
        RetryMode::After(oldest.map_or(Duration::ZERO, |oldest| (*oldest + MINUTE) - now))
    }

    fn limit(&self) -> u32 {
        self.connections
    }

    fn set_max_connections(&mut self, max: u32) {
        self.connections = max.max(1);
    }

    fn binding(&self) -> Option<BindingLimit> {
        (self.connections < u32::MAX).then_some(BindingLimit::ConfiguredCap(self.connections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PermitRequest, Quota, Scheduler};

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Returns a pool in which requests were sent at those times and rejected at once.
    fn pool(sent: &[f64]) -> Scheduler {
        let mut pool = Scheduler::new(Box::new(ReactivePolicy::new(None)));
        for now in sent {
            pool.on_request(Duration::ZERO, PermitRequest::default());
            let mut granted = None;
            pool.on_tick(secs(*now), |_, flight| granted = Some(flight));
            let quota = Quota::default();
            pool.on_end(secs(*now), granted.unwrap(), &SendOutcome::Rejected { quota });
        }
        pool
    }

    #[test]
    fn requests_are_sent_at_once_up_to_the_limit() {
        for (connections, granted) in [(None, 1000), (Some(7), 7), (Some(0), 1)] {
            let mut pool = Scheduler::new(Box::new(ReactivePolicy::new(connections)));
            for _ in 0..1000 {
                pool.on_request(Duration::ZERO, PermitRequest::default());
            }
            pool.on_tick(Duration::ZERO, |_, _| {});
            assert_eq!(pool.in_flight(), granted, "{connections:?}");
            assert_eq!(pool.limit(), connections.map_or(u32::MAX, |some: u32| some.max(1)));
        }
    }

    #[test]
    fn retry_waits_until_the_oldest_request_is_a_minute_old() {
        let table: [(&[f64], f64, f64); 8] = [
            (&[10.0], 10.0, 62.0),
            (&[10.0], 10.25, 61.75),
            (&[10.0, 30.0, 50.0], 50.5, 21.5),
            (&[10.0, 30.0, 50.0], 71.999, 0.001),
            // The first is a minute old; the second is the oldest that counts.
            (&[10.0, 30.0, 50.0], 72.0, 20.0),
            (&[10.0, 30.0, 50.0, 100.0], 100.0, 12.0),
            (&[10.0, 10.0, 10.0, 73.0], 73.0, 62.0),
            (&[0.0], 0.0, 62.0),
        ];
        for (sent, now, wait) in table {
            let (retry_mode, wait) = (pool(sent).retry_mode(secs(now)), secs(wait));
            assert_eq!(retry_mode, RetryMode::After(wait), "{sent:?} at {now}");
        }
    }

    #[test]
    fn retry_is_immediate_without_a_request_in_the_last_minute() {
        for (sent, now) in [(&[][..], 5.0), (&[10.0, 20.0][..], 82.0), (&[10.0][..], 500.0)] {
            assert_eq!(pool(sent).retry_mode(secs(now)), RetryMode::After(Duration::ZERO));
        }
    }

    #[test]
    fn send_times_older_than_a_minute_are_dropped() {
        let mut reactive = ReactivePolicy::new(None);
        for second in 0..10_000 {
            let view = PoolView { now: Duration::from_secs(second), in_flight: 1, waiting: 0 };
            reactive.on_sent(view, Flight(second), TokenCost::default());
            reactive.on_sent(view, Flight(second), TokenCost::default());
        }
        assert_eq!(reactive.sent.len(), 62);
    }
}
