//! The hypothesis that the provider is out of order.
//!
//! Failures teach nothing about limits. While it is out of order single requests find out when
//! it is back.

use std::collections::VecDeque;

const FAILURE_WINDOW_S: f64 = 10.0;
const MIN_FAILURES: usize = 5;

#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    /// Times of recent endings, and whether they were failures.
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
    /// When the next request may go out; `None` when something has to happen first.
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

    /// The provider responded, whatever it said. Returns how long it was out of order.
    pub(super) fn on_responded(&mut self, now: f64, sent_at: f64) -> Option<f64> {
        self.note(now, false);
        // An answer to a request from before says nothing about now.
        if self.open.is_some_and(|open| sent_at >= open.since) {
            self.recent.clear();
            return self.open.take().map(|open| now - open.since);
        }
        None
    }

    /// A request failed. Returns whether the provider is out of order from now on.
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
        let most = 2 * failures > self.recent.len();
        if failures < MIN_FAILURES || !(most || in_a_row) {
            return false;
        }
        let open = Outage { since: now, next_probe: now + 0.5, pause: 0.5, is_probing: false };
        self.open = Some(open);
        true
    }

    /// The probe came to nothing.
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
    fn five_failures_of_ten_open_it_and_one_answer_closes_it() {
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
        assert_eq!(breaker.next_at(9.0), Some(9.65), "the next one comes a little later");
        breaker.on_sent();
        assert_eq!(breaker.on_responded(10.0, 3.0), None, "an answer from before says nothing");
        assert_eq!(breaker.on_responded(10.0, 9.7), Some(6.0));
        assert_eq!(breaker.next_at(10.0), Some(10.0));
    }

    #[test]
    fn failures_among_many_answers_are_no_outage() {
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
    fn a_probe_that_nobody_waits_for_makes_room_for_another() {
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
