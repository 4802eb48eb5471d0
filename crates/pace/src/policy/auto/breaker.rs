//! Circuit breaker: detection of an outage of the provider.
//!
//! Failures say nothing about limits. During an outage, single requests test whether the provider is
//! back.

use std::collections::VecDeque;

/// Time over which failures are counted.
const FAILURE_WINDOW_S: f64 = 10.0;
/// Minimum number of failures of an outage.
const MIN_FAILURES: usize = 5;

/// The circuit breaker; open during an outage.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    /// Times of recent responses and failures, and whether they were failures.
    recent: VecDeque<(f64, bool)>,
    open: Option<Outage>,
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    since: f64,
    next_probe: f64,
    pause: f64,
    is_probing: bool,
}

impl CircuitBreaker {
    /// Returns when the next request may be sent, or `None` if an event has to occur first.
    pub(super) fn next_at(&self, now: f64) -> Option<f64> {
        match self.open {
            None => Some(now),
            Some(open) if open.is_probing => None,
            Some(open) => Some(open.next_probe),
        }
    }

    pub(super) fn on_sent(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = true;
        }
    }

    /// Handles a response of any kind. Returns the length of the outage that it ends.
    pub(super) fn on_responded(&mut self, now: f64, sent_at: f64) -> Option<f64> {
        self.note(now, false);
        // A response to a request from before the outage does not end it.
        if self.open.is_some_and(|open| sent_at >= open.since) {
            self.recent.clear();
            return self.open.take().map(|open| now - open.since);
        }
        None
    }

    /// Handles a failure. Returns whether it starts an outage.
    pub(super) fn on_failed(&mut self, now: f64) -> bool {
        self.note(now, true);
        if let Some(open) = &mut self.open {
            open.is_probing = false;
            open.pause = (open.pause * 1.3).min(3.0);
            open.next_probe = now + open.pause;
            return false;
        }
        let failures = self.recent.iter().filter(|(_, failed)| *failed).count();
        let in_a_row = self.recent.iter().rev().take(MIN_FAILURES).all(|(_, failed)| *failed);
        let is_majority = 2 * failures > self.recent.len();
        if failures < MIN_FAILURES || !(is_majority || in_a_row) {
            return false;
        }
        let open = Outage { since: now, next_probe: now + 0.5, pause: 0.5, is_probing: false };
        self.open = Some(open);
        true
    }

    /// Handles a dropped request: another probe may be sent.
    pub(super) fn on_dropped(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = false;
        }
    }

    fn note(&mut self, now: f64, failed: bool) {
        self.recent.push_back((now, failed));
        while self.recent.front().is_some_and(|(at, _)| now - at > FAILURE_WINDOW_S) {
            self.recent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_open_it_and_one_answer_closes_it() {
        let mut breaker = CircuitBreaker::default();
        for second in 0..4 {
            assert!(!breaker.on_failed(f64::from(second)));
            assert_eq!(breaker.next_at(4.0), Some(4.0));
        }
        assert!(breaker.on_failed(4.0));
        assert_eq!(breaker.next_at(4.1), Some(4.5));
        breaker.on_sent();
        assert_eq!(breaker.next_at(9.0), None, "one probe at a time");
        assert!(!breaker.on_failed(9.0));
        assert_eq!(breaker.next_at(9.0), Some(9.65), "the pause grows");
        breaker.on_sent();
        assert_eq!(breaker.on_responded(10.0, 3.0), None, "sent before the outage");
        assert_eq!(breaker.on_responded(10.0, 9.7), Some(6.0));
        assert_eq!(breaker.next_at(10.0), Some(10.0));
    }

    #[test]
    fn rare_failures_are_no_outage() {
        let mut breaker = CircuitBreaker::default();
        for number in 0..200 {
            let now = f64::from(number) / 20.0;
            assert_eq!(breaker.on_responded(now, now), None);
            if number % 10 == 0 {
                assert!(!breaker.on_failed(now));
            }
        }
    }

    #[test]
    fn dropped_probe_is_followed_by_another() {
        let mut breaker = CircuitBreaker::default();
        (0..5).for_each(|_| {
            breaker.on_failed(0.0);
        });
        breaker.on_sent();
        assert_eq!(breaker.next_at(1.0), None);
        breaker.on_dropped();
        assert_eq!(breaker.next_at(1.0), Some(0.5));
    }
}
