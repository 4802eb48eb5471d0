//! Requests in flight. The end of a request is known when it is admitted, so no completion call is needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// End times of the requests in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    ends: BinaryHeap<Reverse<Duration>>,
}

impl InFlight {
    /// Removes the requests that have ended by `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            self.ends.pop();
        }
    }

    /// Adds a request with its end time.
    pub(crate) fn add(&mut self, end: Duration) {
        self.ends.push(Reverse(end));
    }

    /// Returns the number of requests in flight.
    pub(crate) fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Returns the end of the next request, if the limit is reached.
    pub(crate) fn next_end_at(&self, limit: Option<u64>) -> Option<Duration> {
        let is_full = limit.is_some_and(|limit| self.count() >= limit);
        is_full.then(|| self.ends.peek().map_or(Duration::ZERO, |Reverse(end)| *end))
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
        assert_eq!(flight.next_end_at(Some(2)), Some(second(1)));
        assert_eq!(flight.next_end_at(Some(3)), None);
        assert_eq!(flight.next_end_at(None), None);
        flight.advance(Duration::from_millis(999));
        assert_eq!(flight.count(), 2);
        flight.advance(second(1));
        assert_eq!(flight.count(), 1);
        flight.advance(second(9));
        assert_eq!(flight.count(), 0);
    }
}
