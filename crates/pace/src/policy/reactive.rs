//! `reactive`: launch at once, and after a rejection wait until the minute is over.
//!
//! It needs to know nothing about the provider: most quotas are per minute, so what was rejected
//! has a chance again when the oldest request of the last minute no longer counts there.

use crate::{Comeback, Cost, Ending, Flight, Gate, Policy, View};
use std::collections::VecDeque;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// The strategy.
#[derive(Debug, Clone)]
pub struct Reactive {
    connections: u32,
    /// When requests were sent, the oldest first; those of the last minute, and perhaps older ones.
    sent: VecDeque<Duration>,
}

impl Reactive {
    /// So many in flight, at least one; without a bound where there is no number.
    pub fn new(connections: Option<u32>) -> Reactive {
        let connections = connections.map_or(u32::MAX, |connections| connections.max(1));
        Reactive { connections, sent: VecDeque::new() }
    }
}

impl Policy for Reactive {
    fn gate(&mut self, view: View, _cost: Cost) -> Gate {
        if view.in_flight < self.connections { Gate::Open } else { Gate::Shut }
    }

    fn sent(&mut self, view: View, _flight: Flight, _cost: Cost) {
        while self.sent.front().is_some_and(|sent| *sent + MINUTE <= view.now) {
            self.sent.pop_front();
        }
        // Only the oldest matters, and of a burst one is as old as the other.
        if self.sent.back() != Some(&view.now) {
            self.sent.push_back(view.now);
        }
    }

    fn ended(&mut self, _view: View, _flight: Flight, _cost: Cost, _ending: &Ending) {}

    /// Without jitter and in full: who comes earlier is rejected again.
    fn comeback(&self, now: Duration) -> Comeback {
        let gone = self.sent.partition_point(|sent| *sent + MINUTE <= now);
        let oldest = self.sent.get(gone);
        Comeback::After(oldest.map_or(Duration::ZERO, |oldest| (*oldest + MINUTE) - now))
    }

    fn limit(&self) -> u32 {
        self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Quota, Scheduler};

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// A pool in which requests were sent at those times and rejected at once.
    fn pool(sent: &[f64]) -> Scheduler {
        let mut pool = Scheduler::new(Box::new(Reactive::new(None)));
        for now in sent {
            pool.on_ask(Ask::default());
            let mut granted = None;
            pool.on_tick(secs(*now), |_, flight| granted = Some(flight));
            let quota = Quota::default();
            pool.on_end(secs(*now), granted.unwrap(), &Ending::Rejected { quota });
        }
        pool
    }

    #[test]
    fn everything_goes_out_at_once_as_far_as_there_are_connections() {
        for (connections, granted) in [(None, 1000), (Some(7), 7), (Some(0), 1)] {
            let mut pool = Scheduler::new(Box::new(Reactive::new(connections)));
            for _ in 0..1000 {
                pool.on_ask(Ask::default());
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
            let (comeback, wait) = (pool(sent).comeback(secs(now)), secs(wait));
            assert_eq!(comeback, Comeback::After(wait), "{sent:?} at {now}");
        }
    }

    #[test]
    fn without_a_request_in_the_last_minute_there_is_no_wait() {
        for (sent, now) in [(&[][..], 5.0), (&[10.0, 20.0][..], 80.0), (&[10.0][..], 500.0)] {
            assert_eq!(pool(sent).comeback(secs(now)), Comeback::After(Duration::ZERO));
        }
    }

    #[test]
    fn only_the_last_minute_is_kept() {
        let mut reactive = Reactive::new(None);
        for second in 0..10_000 {
            let view = View { now: Duration::from_secs(second), in_flight: 1, waiting: 0 };
            reactive.sent(view, Flight(second), Cost::default());
            reactive.sent(view, Flight(second), Cost::default());
        }
        assert_eq!(reactive.sent.len(), 60);
    }
}
