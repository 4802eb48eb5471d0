//! Requests in flight at a server with continuous batching, which share its decoding steps.
//!
//! With `n` requests in flight, each one proceeds at `base / (base + n * per_request)` of the speed of
//! an unloaded server. The speed is the same for all and changes whenever a request joins or ends. With
//! a constant number in flight, throughput is therefore `n / (base + n * per_request)`.

use crate::Batching;
use std::collections::VecDeque;
use std::time::Duration;

/// A request at a server with continuous batching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSlot(u64);

/// The requests in flight and their progress.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Additional latency per request in flight, as a multiple of the latency without load.
    per_request: f64,
    now: f64,
    /// Seconds of an unloaded server that a request in flight since the start would have received.
    progress: f64,
    /// Progress at which each request ends, in ascending order.
    ends: VecDeque<(f64, BatchSlot)>,
    next_slot: u64,
}

impl Batch {
    pub(crate) fn new(batching: Batching) -> Batch {
        Batch {
            per_request: batching.per_request_ms / batching.base_ms,
            now: 0.0,
            progress: 0.0,
            ends: VecDeque::new(),
            next_slot: 0,
        }
    }

    /// Returns the factor on latency with a number of requests in flight.
    fn slowdown(&self, in_flight: usize) -> f64 {
        1.0 + in_flight as f64 * self.per_request
    }

    /// Advances all requests to `now` and removes those that have ended.
    pub(crate) fn advance(&mut self, now: Duration) {
        let now = now.as_secs_f64();
        while let Some((end, _)) = self.ends.front() {
            let end_at = self.now + (end - self.progress) * self.slowdown(self.ends.len());
            if end_at > now {
                break;
            }
            (self.now, self.progress) = (end_at, *end);
            self.ends.pop_front();
        }
        self.progress += (now - self.now) / self.slowdown(self.ends.len());
        self.now = now;
    }

    /// Adds a request that takes `latency` without load.
    pub(crate) fn add(&mut self, latency: Duration) -> BatchSlot {
        let slot = BatchSlot(self.next_slot);
        self.next_slot += 1;
        let end = self.progress + latency.as_secs_f64();
        let index = self.ends.partition_point(|(other, _)| *other <= end);
        self.ends.insert(index, (end, slot));
        slot
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the time until each request ends if none joins, the earliest first.
    pub(crate) fn times_left(&self) -> impl Iterator<Item = (BatchSlot, Duration)> {
        let mut in_flight = self.ends.len();
        let (mut progress, mut seconds) = (self.progress, 0.0);
        self.ends.iter().map(move |(end, slot)| {
            seconds += (end - progress) * self.slowdown(in_flight);
            progress = *end;
            in_flight -= 1;
            (*slot, round_up(seconds))
        })
    }

    /// Returns the time until a request ends if none joins; `None` if it has ended.
    pub(crate) fn time_left(&self, slot: BatchSlot) -> Option<Duration> {
        self.times_left().find(|(other, _)| *other == slot).map(|(_, left)| left)
    }
}

/// Rounds up to microseconds. After this time the request has ended in spite of rounding errors.
fn round_up(seconds: f64) -> Duration {
    crate::latency::delay((seconds * 1e6).floor() / 1e6 + 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Batching = Batching { base_ms: 1000.0, per_request_ms: 11.5 };
    const SECOND: Duration = Duration::from_secs(1);

    /// Throughput of `transformers serve --continuous-batching` on one H200 (64 tokens per answer,
    /// closed loop) by requests in flight.
    const MEASURED: [(usize, f64); 7] =
        [(1, 0.81), (16, 8.4), (64, 28.2), (100, 45.3), (256, 51.1), (400, 62.2), (1000, 78.9)];

    /// Returns the throughput of a closed loop over about ten latencies.
    fn throughput(in_flight: usize) -> f64 {
        let mut batch = Batch::new(H200);
        (0..in_flight).for_each(|_| {
            batch.add(SECOND);
        });
        let (mut now, mut ended) = (Duration::ZERO, 0);
        while ended < 10 * in_flight {
            now += batch.times_left().next().unwrap().1;
            batch.advance(now);
            while batch.len() < in_flight {
                batch.add(SECOND);
                ended += 1;
            }
        }
        ended as f64 / now.as_secs_f64()
    }

    #[test]
    fn throughput_is_concave_and_close_to_a_real_server() {
        let mut previous = 0.0;
        for (in_flight, measured) in MEASURED {
            let simulated = throughput(in_flight);
            let formula = in_flight as f64 / (1.0 + 0.0115 * in_flight as f64);
            assert!((simulated / formula - 1.0).abs() < 0.01, "{in_flight}: {simulated}");
            assert!((0.95..1.7).contains(&(simulated / measured)), "{in_flight}: {simulated}");
            assert!(simulated > previous);
            previous = simulated;
        }
    }

    #[test]
    fn requests_that_join_slow_down_those_in_progress() {
        let mut batch = Batch::new(Batching { base_ms: 1000.0, per_request_ms: 1000.0 });
        let first = batch.add(SECOND);
        assert_eq!(batch.time_left(first), Some(round_up(2.0)));
        batch.advance(SECOND);
        let second = batch.add(SECOND);
        // Half of the first request is left, at a third of the full speed.
        assert_eq!(batch.time_left(first), Some(round_up(1.5)));
        // The second one does the same half beside it, and the rest alone at half speed.
        assert_eq!(batch.time_left(second), Some(round_up(2.5)));
        batch.advance(SECOND + round_up(1.5));
        assert_eq!((batch.len(), batch.time_left(first)), (1, None));
        batch.advance(SECOND + round_up(2.5));
        assert_eq!(batch.len(), 0);
    }

    #[test]
    fn shorter_requests_end_first() {
        let mut batch = Batch::new(Batching { base_ms: 1000.0, per_request_ms: 1000.0 });
        let long = batch.add(2 * SECOND);
        let short = batch.add(SECOND);
        let order: Vec<BatchSlot> = batch.times_left().map(|(slot, _)| slot).collect();
        assert_eq!(order, [short, long]);
    }
}
