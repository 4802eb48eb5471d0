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

    /// Returns the end of the request that ends after `earlier` others; zero if there are fewer requests.
    pub(crate) fn nth_end(&self, earlier: u64) -> Duration {
        let end = if earlier == 0 {
            self.ends.peek().copied()
        } else {
            let mut ends: Vec<Reverse<Duration>> = self.ends.iter().copied().collect();
            ends.sort_unstable_by_key(|Reverse(end)| *end);
            usize::try_from(earlier).ok().and_then(|index| ends.get(index)).copied()
        };
        end.map_or(Duration::ZERO, |Reverse(end)| end)
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
