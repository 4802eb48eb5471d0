//! Requests in flight. They end by themselves, so no completion call is needed.

use super::batching::{Batch, BatchSlot};
use crate::Batching;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// The requests in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    now: Duration,
    /// End times, known at admission.
    ends: BinaryHeap<Reverse<Duration>>,
    /// Requests whose end depends on those that join later.
    batch: Option<Batch>,
}

impl InFlight {
    pub(crate) fn new(batching: Option<Batching>) -> InFlight {
        InFlight { batch: batching.map(Batch::new), ..InFlight::default() }
    }

    /// Removes the requests that have ended by `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        self.now = now;
        if let Some(batch) = &mut self.batch {
            batch.advance(now);
        }
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            self.ends.pop();
        }
    }

    /// Adds a request with its end time.
    pub(crate) fn add(&mut self, end: Duration) {
        self.ends.push(Reverse(end));
    }

    /// Adds a request that takes `latency` without load, if the server batches requests.
    pub(crate) fn join(&mut self, latency: Duration) -> Option<BatchSlot> {
        self.batch.as_mut().map(|batch| batch.add(latency))
    }

    /// Returns the time until a batched request ends if none joins; `None` if it has ended.
    pub(crate) fn time_left(&self, slot: BatchSlot) -> Option<Duration> {
        self.batch.as_ref()?.time_left(slot)
    }

    /// Returns the number of requests in flight.
    pub(crate) fn count(&self) -> u64 {
        (self.ends.len() + self.batch.as_ref().map_or(0, Batch::len)) as u64
    }

    /// Returns the end of the request that ends after `earlier` others; zero if there are fewer requests.
    pub(crate) fn nth_end(&self, earlier: u64) -> Duration {
        let Ok(index) = usize::try_from(earlier) else { return Duration::ZERO };
        let end = match &self.batch {
            Some(batch) => batch.times_left().nth(index).map(|(_, left)| self.now + left),
            None if index == 0 => self.ends.peek().map(|Reverse(end)| *end),
            None => {
                let mut ends: Vec<Duration> = self.ends.iter().map(|Reverse(end)| *end).collect();
                ends.sort_unstable();
                ends.get(index).copied()
            }
        };
        end.unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_in_flight_until_their_end() {
        let second = Duration::from_secs;
        let mut flight = InFlight::default();
        flight.add(second(3));
        flight.add(second(1));
        assert_eq!([0, 1, 2].map(|n| flight.nth_end(n)), [second(1), second(3), second(0)]);
        flight.advance(Duration::from_millis(999));
        assert_eq!(flight.count(), 2);
        flight.advance(second(1));
        assert_eq!(flight.count(), 1);
        flight.advance(second(9));
        assert_eq!(flight.count(), 0);
    }
}
