//! Requests in flight. Nobody says when one is done: its end is known when it is admitted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// The ends of all admitted requests that lie in the future.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    ends: BinaryHeap<Reverse<Duration>>,
}

impl Flight {
    /// Forgets those that have ended.
    pub(crate) fn advance(&mut self, now: Duration) {
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            self.ends.pop();
        }
    }

    /// Adds one that ends then.
    pub(crate) fn add(&mut self, end: Duration) {
        self.ends.push(Reverse(end));
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// When the next one ends, if there are as many as there may be.
    pub(crate) fn next_end_at(&self, most: Option<u64>) -> Option<Duration> {
        let full = most.is_some_and(|most| self.count() >= most);
        full.then(|| self.ends.peek().map_or(Duration::ZERO, |Reverse(end)| *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_in_flight_until_its_end() {
        let second = Duration::from_secs;
        let mut flight = Flight::default();
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
