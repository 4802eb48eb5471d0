//! `reactive`: launch at once, and after a rejection wait until the minute is over.
//!
//! It needs to know nothing about the provider: most quotas are per minute, so what was rejected
//! has a chance again when the oldest request of the last minute no longer counts there.

use crate::{Flight, Gate, Policy, PoolView, RetryMode, SendOutcome, TokenCost};
use std::collections::VecDeque;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// The strategy.
#[derive(Debug, Clone)]
pub struct ReactivePolicy {
    connections: u32,
    /// When requests were sent, the oldest first; those of the last minute, and perhaps older ones.
    sent: VecDeque<Duration>,
}

impl ReactivePolicy {
    /// So many in flight, at least one; without a bound where there is no number.
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
        // Only the oldest matters, and of a burst one is as old as the other.
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

    /// Without jitter and in full: who comes earlier is rejected again.
    fn retry_mode(&self, now: Duration) -> RetryMode {
        let gone = self.sent.partition_point(|sent| *sent + MINUTE <= now);
        let oldest = self.sent.get(gone);
        RetryMode::After(oldest.map_or(Duration::ZERO, |oldest| (*oldest + MINUTE) - now))
    }

    fn limit(&self) -> u32 {
        self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PermitRequest, Quota, Scheduler};

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// A pool in which requests were sent at those times and rejected at once.
    fn pool(sent: &[f64]) -> Scheduler {
        let mut pool = Scheduler::new(Box::new(ReactivePolicy::new(None)));
        for now in sent {
            pool.on_request(PermitRequest::default());
            let mut granted = None;
            pool.on_tick(secs(*now), |_, flight| granted = Some(flight));
            let quota = Quota::default();
            pool.on_end(secs(*now), granted.unwrap(), &SendOutcome::Rejected { quota });
        }
        pool
    }

    #[test]
    fn everything_goes_out_at_once_as_far_as_there_are_connections() {
        for (connections, granted) in [(None, 1000), (Some(7), 7), (Some(0), 1)] {
            let mut pool = Scheduler::new(Box::new(ReactivePolicy::new(connections)));
            for _ in 0..1000 {
                pool.on_request(PermitRequest::default());
            }
            pool.on_tick(Duration::ZERO, |_, _| {});
            assert_eq!(pool.in_flight(), granted, "{connections:?}");
            assert_eq!(pool.limit(), connections.map_or(u32::MAX, |some: u32| some.max(1)));
        }
    }

    #[test]
    fn the_wait_ends_exactly_when_the_oldest_of_the_last_minute_is_one_minute_old() {
        let table: [(&[f64], f64, f64); 8] = [
            (&[10.0], 10.0, 60.0),
            (&[10.0], 10.25, 59.75),
            (&[10.0, 30.0, 50.0], 50.5, 19.5),
            (&[10.0, 30.0, 50.0], 69.999, 0.001),
            // Now the first is a minute old, and the second is the oldest that counts.
            (&[10.0, 30.0, 50.0], 70.0, 20.0),
            (&[10.0, 30.0, 50.0, 100.0], 100.0, 10.0),
            (&[10.0, 10.0, 10.0, 71.0], 71.0, 60.0),
            (&[0.0], 0.0, 60.0),
        ];
        for (sent, now, wait) in table {
            let (retry_mode, wait) = (pool(sent).retry_mode(secs(now)), secs(wait));
            assert_eq!(retry_mode, RetryMode::After(wait), "{sent:?} at {now}");
        }
    }

    #[test]
    fn without_a_request_in_the_last_minute_there_is_no_wait() {
        for (sent, now) in [(&[][..], 5.0), (&[10.0, 20.0][..], 80.0), (&[10.0][..], 500.0)] {
            assert_eq!(pool(sent).retry_mode(secs(now)), RetryMode::After(Duration::ZERO));
        }
    }

    #[test]
    fn only_the_last_minute_is_kept() {
        let mut reactive = ReactivePolicy::new(None);
        for second in 0..10_000 {
            let view = PoolView { now: Duration::from_secs(second), in_flight: 1, waiting: 0 };
            reactive.on_sent(view, Flight(second), TokenCost::default());
            reactive.on_sent(view, Flight(second), TokenCost::default());
        }
        assert_eq!(reactive.sent.len(), 60);
    }
}
