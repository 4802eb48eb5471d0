//! Circuit breaker: detection of an outage of the provider, for every strategy.
//!
//! Failures say nothing about limits. During an outage, single requests test whether the provider is
//! back; all others wait in the queue.

use std::collections::VecDeque;
use std::time::Duration;

/// Time over which failures are counted.
const FAILURE_WINDOW: Duration = Duration::from_secs(10);
/// Minimum number of failures of an outage. As many in a row are an outage at any distance.
const MIN_FAILURES: usize = 5;
/// Pause before the first probe, and the maximum pause. Each pause is longer by the factor.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(3);
const PAUSE_FACTOR: f64 = 1.3;
/// Within a wait that the provider announces, probes are at least this long apart, and at most four.
const MIN_PAUSE_ANNOUNCED: Duration = Duration::from_secs(5);
const PROBES_PER_ANNOUNCEMENT: u32 = 4;

/// The circuit breaker; open during an outage.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    /// Times of recent responses and failures, and whether they were failures.
    recent: VecDeque<(Duration, bool)>,
    open: Option<Outage>,
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    since: Duration,
    next_probe: Duration,
    pause: Duration,
    is_probing: bool,
}

/// A wait that the provider announced with a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnnouncedWait {
    pub(crate) wait: Duration,
    /// Whether nothing may be sent before its end.
    pub(crate) is_strict: bool,
}

impl AnnouncedWait {
    /// Returns the pause before the next probe.
    fn pause(self) -> Duration {
        match self.is_strict {
            true => self.wait,
            false => (self.wait / PROBES_PER_ANNOUNCEMENT).max(MIN_PAUSE_ANNOUNCED).min(self.wait),
        }
    }
}

impl CircuitBreaker {
    /// Returns when the next request may be sent, or `None` if an event has to occur first.
    pub(crate) fn next_at(&self, now: Duration) -> Option<Duration> {
        match self.open {
            None => Some(now),
            Some(open) if open.is_probing => None,
            Some(open) => Some(open.next_probe),
        }
    }

    /// Returns the start of the outage.
    pub(crate) fn open_since(&self) -> Option<Duration> {
        self.open.map(|open| open.since)
    }

    pub(crate) fn on_sent(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = true;
        }
    }

    /// Handles a response of any kind. Returns whether it ends an outage.
    pub(crate) fn on_responded(&mut self, now: Duration, sent_at: Duration) -> bool {
        self.note(now, false);
        // A response to a request from before the outage does not end it.
        let ends = self.open.is_some_and(|open| sent_at >= open.since);
        if ends {
            self.recent.clear();
            self.open = None;
        }
        ends
    }

    /// Handles a failure. Returns whether it starts an outage.
    pub(crate) fn on_failed(
        &mut self,
        now: Duration,
        sent_at: Duration,
        announced: Option<AnnouncedWait>,
    ) -> bool {
        self.note(now, true);
        if let Some(open) = &mut self.open {
            // Requests from before the outage are no probes.
            if sent_at >= open.since {
                open.is_probing = false;
                open.pause = open.pause.mul_f64(PAUSE_FACTOR).min(MAX_PAUSE);
                open.next_probe = now + announced.map_or(open.pause, AnnouncedWait::pause);
            }
            return false;
        }
        let failures = self.recent.iter().filter(|(_, failed)| *failed).count();
        let in_a_row = self.recent.iter().rev().take(MIN_FAILURES).all(|(_, failed)| *failed);
        let is_majority = 2 * failures > self.recent.len();
        if failures < MIN_FAILURES || !(is_majority || in_a_row) {
            return false;
        }
        let pause = announced.map_or(FIRST_PAUSE, AnnouncedWait::pause);
        self.open = Some(Outage {
            since: now,
            next_probe: now + pause,
            pause: FIRST_PAUSE,
            is_probing: false,
        });
        true
    }

    /// Handles a dropped request: another probe may be sent.
    pub(crate) fn on_dropped(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = false;
        }
    }

    fn note(&mut self, now: Duration, failed: bool) {
        self.recent.push_back((now, failed));
        // The last few count at any age: with one request at a time, failures are far apart.
        while self.recent.len() > MIN_FAILURES
            && self.recent.front().is_some_and(|(at, _)| now - *at > FAILURE_WINDOW)
        {
            self.recent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Returns a breaker that five failures at time zero have opened.
    fn open(announced: Option<AnnouncedWait>) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::default();
        let opened = (0..5).map(|_| breaker.on_failed(secs(0.0), secs(0.0), announced));
        assert_eq!(opened.collect::<Vec<_>>(), [false, false, false, false, true]);
        breaker
    }

    #[test]
    fn five_failures_open_it_and_one_answer_closes_it() {
        let mut breaker = CircuitBreaker::default();
        for second in [0.0, 1.0, 2.0, 3.0] {
            assert!(!breaker.on_failed(secs(second), secs(0.0), None));
            assert_eq!(breaker.next_at(secs(4.0)), Some(secs(4.0)));
        }
        assert!(breaker.on_failed(secs(4.0), secs(0.0), None));
        assert_eq!(breaker.next_at(secs(4.1)), Some(secs(4.5)));
        breaker.on_sent();
        assert_eq!(breaker.next_at(secs(9.0)), None, "one probe at a time");
        assert!(!breaker.on_failed(secs(8.0), secs(3.9), None), "sent before the outage");
        assert_eq!(breaker.next_at(secs(9.0)), None, "the probe is still in flight");
        assert!(!breaker.on_failed(secs(9.0), secs(4.5), None));
        assert_eq!(breaker.next_at(secs(9.0)), Some(secs(9.65)), "the pause grows");
        breaker.on_sent();
        assert!(!breaker.on_responded(secs(10.0), secs(3.0)), "sent before the outage");
        assert_eq!(breaker.open_since(), Some(secs(4.0)));
        assert!(breaker.on_responded(secs(10.0), secs(9.7)));
        assert_eq!(breaker.next_at(secs(10.0)), Some(secs(10.0)));
    }

    #[test]
    fn failures_in_a_row_open_it_at_any_distance() {
        let mut breaker = CircuitBreaker::default();
        assert!(!breaker.on_responded(secs(0.0), secs(0.0)));
        for second in [60.0, 120.0, 180.0, 240.0] {
            assert!(!breaker.on_failed(secs(second), secs(second), None));
        }
        assert!(breaker.on_failed(secs(300.0), secs(300.0), None));
    }

    #[test]
    fn rare_failures_are_no_outage() {
        let mut breaker = CircuitBreaker::default();
        for number in 0..200 {
            let now = secs(f64::from(number) / 20.0);
            assert!(!breaker.on_responded(now, now));
            if number % 10 == 0 {
                assert!(!breaker.on_failed(now, now, None));
            }
        }
    }

    #[test]
    fn dropped_probe_is_followed_by_another() {
        let mut breaker = open(None);
        breaker.on_sent();
        assert_eq!(breaker.next_at(secs(1.0)), None);
        breaker.on_dropped();
        assert_eq!(breaker.next_at(secs(1.0)), Some(secs(0.5)));
    }

    #[test]
    fn announced_wait_delays_probes() {
        let table = [(60.0, false, 15.0), (8.0, false, 5.0), (2.0, false, 2.0), (60.0, true, 60.0)];
        for (wait, is_strict, pause) in table {
            let announced = Some(AnnouncedWait { wait: secs(wait), is_strict });
            let mut breaker = open(announced);
            assert_eq!(breaker.next_at(secs(0.0)), Some(secs(pause)), "{announced:?}");
            breaker.on_sent();
            breaker.on_failed(secs(100.0), secs(99.0), announced);
            assert_eq!(breaker.next_at(secs(0.0)), Some(secs(100.0 + pause)), "{announced:?}");
        }
    }
}
