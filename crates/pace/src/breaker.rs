//! Circuit breaker: detection of an outage of the provider, for every strategy.
//!
//! Failures say nothing about limits. During an outage, single requests test whether the provider is
//! back; all others wait in the queue.

use std::collections::VecDeque;
use std::time::Duration;

/// Minimum number of failures of an outage: of successive requests, or of most requests sent within a
/// time.
const MIN_FAILURES: usize = 5;
const FAILURE_WINDOW: Duration = Duration::from_secs(10);
/// Latest requests of which failures are kept.
const MAX_SENT: usize = 4096;
/// Pause before the first probe, and the maximum pause. Each pause is longer by the factor.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(3);
const PAUSE_FACTOR: f64 = 1.3;
/// Within a wait that the provider announces, probes are at least this long apart, and at most four.
const MIN_PAUSE_ANNOUNCED_S: f64 = 5.0;
const PROBES_PER_ANNOUNCEMENT: i32 = 4;

/// The circuit breaker; open during an outage.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    /// The latest requests in the order of sending. Failures arrive sooner than answers, so those that
    /// arrive in a row prove nothing.
    sent: VecDeque<BreakerEntry>,
    /// Number of the first of them.
    first: u64,
    open: Option<Outage>,
}

#[derive(Debug, Clone, Copy)]
struct BreakerEntry {
    at: Duration,
    has_failed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    since: Duration,
    next_probe: Duration,
    pause: Duration,
    is_probing: bool,
    announcement: Option<Announcement>,
}

/// A wait that the provider announced with a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnnouncedWait {
    pub(crate) wait: Duration,
    /// Whether nothing may be sent before its end.
    pub(crate) is_strict: bool,
}

/// The announced wait that applies, and the probes within it.
#[derive(Debug, Clone, Copy)]
struct Announcement {
    since: Duration,
    wait: Duration,
    probes: i32,
}

impl Announcement {
    /// Returns the time of the next probe. The distances grow with the length of the wait, because
    /// short outages are more frequent than the announced lengths suggest.
    fn next_probe(&mut self, now: Duration) -> Duration {
        let end = self.since.saturating_add(self.wait);
        if self.probes >= PROBES_PER_ANNOUNCEMENT {
            return end;
        }
        let wait = self.wait.as_secs_f64().max(MIN_PAUSE_ANNOUNCED_S);
        let factor = (wait / MIN_PAUSE_ANNOUNCED_S).powf(1.0 / f64::from(PROBES_PER_ANNOUNCEMENT));
        let offset = Duration::from_secs_f64(MIN_PAUSE_ANNOUNCED_S * factor.powi(self.probes));
        self.probes += 1;
        let earliest = now + Duration::from_secs_f64(MIN_PAUSE_ANNOUNCED_S);
        (self.since + offset).max(earliest).min(end)
    }
}

impl Outage {
    fn new(now: Duration, announced: Option<AnnouncedWait>) -> Outage {
        let mut outage = Outage {
            since: now,
            next_probe: now + FIRST_PAUSE,
            pause: FIRST_PAUSE,
            is_probing: false,
            announcement: None,
        };
        if let Some(announced) = announced {
            outage.next_probe = outage.next_announced(now, announced);
        }
        outage
    }

    /// Handles the failure of a probe.
    fn on_probe_failed(&mut self, now: Duration, announced: Option<AnnouncedWait>) {
        self.is_probing = false;
        self.pause = self.pause.mul_f64(PAUSE_FACTOR).min(MAX_PAUSE);
        self.next_probe = match announced {
            None => now + self.pause,
            Some(announced) => self.next_announced(now, announced),
        };
    }

    fn next_announced(&mut self, now: Duration, announced: AnnouncedWait) -> Duration {
        let AnnouncedWait { wait, is_strict } = announced;
        if is_strict {
            return now.saturating_add(wait);
        }
        let current = self.announcement.filter(|current| now < current.since + current.wait);
        let mut current = current.unwrap_or(Announcement { since: now, wait, probes: 0 });
        let at = current.next_probe(now);
        self.announcement = Some(current);
        at
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

    /// Handles the start of a request; returns its number.
    pub(crate) fn on_sent(&mut self, now: Duration) -> u64 {
        if let Some(open) = &mut self.open {
            open.is_probing = true;
        }
        self.sent.push_back(BreakerEntry { at: now, has_failed: false });
        if self.sent.len() > MAX_SENT {
            self.sent.pop_front();
            self.first += 1;
        }
        self.first + self.sent.len() as u64 - 1
    }

    /// Handles a response of any kind. Returns whether it ends an outage.
    pub(crate) fn on_responded(&mut self, sent_at: Duration) -> bool {
        // A response to a request from before the outage does not end it.
        let ends = self.open.is_some_and(|open| sent_at >= open.since);
        if ends {
            self.first += self.sent.len() as u64;
            self.sent.clear();
            self.open = None;
        }
        ends
    }

    /// Handles the failure of a request with that number. Returns whether it starts an outage.
    pub(crate) fn on_failed(
        &mut self,
        now: Duration,
        (number, sent_at): (u64, Duration),
        announced: Option<AnnouncedWait>,
    ) -> bool {
        if let Some(open) = &mut self.open {
            // Requests from before the outage are no probes.
            if sent_at >= open.since {
                open.on_probe_failed(now, announced);
            }
            return false;
        }
        if !self.proves_outage(number) {
            return false;
        }
        self.open = Some(Outage::new(now, announced));
        true
    }

    /// Records a failure; returns whether the failures so far are an outage.
    fn proves_outage(&mut self, number: u64) -> bool {
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let Some((index, entry)) = index.and_then(|index| Some((index, self.sent.get_mut(index)?)))
        else {
            return false;
        };
        entry.has_failed = true;
        let has_failed = |entry: &&BreakerEntry| entry.has_failed;
        let before = self.sent.range(..index).rev().take_while(has_failed).count();
        let after = self.sent.range(index..).take_while(has_failed).count();
        if before + after >= MIN_FAILURES {
            return true;
        }
        // Requests without an outcome count as answered, except those after the last failure.
        let since = self.sent[index].at.saturating_sub(FAILURE_WINDOW);
        let latest = self.sent.iter().rev().skip_while(|entry| !entry.has_failed);
        let latest = latest.take_while(|entry| entry.at >= since);
        let (failures, all) = latest.fold((0, 0), |(failures, all), entry| {
            (failures + usize::from(entry.has_failed), all + 1)
        });
        failures >= MIN_FAILURES && 2 * failures > all
    }

    /// Handles a dropped request: another probe may be sent.
    pub(crate) fn on_dropped(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Sends a request that fails at once; returns whether that starts an outage.
    fn fail(breaker: &mut CircuitBreaker, now: f64, announced: Option<AnnouncedWait>) -> bool {
        let number = breaker.on_sent(secs(now));
        breaker.on_failed(secs(now), (number, secs(now)), announced)
    }

    /// Returns a breaker that five failures at time zero have opened.
    fn open(announced: Option<AnnouncedWait>) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::default();
        let opened = (0..5).map(|_| fail(&mut breaker, 0.0, announced));
        assert_eq!(opened.collect::<Vec<_>>(), [false, false, false, false, true]);
        breaker
    }

    #[test]
    fn five_failures_open_it_and_one_answer_closes_it() {
        let mut breaker = CircuitBreaker::default();
        let earlier = [(); 2].map(|()| breaker.on_sent(secs(0.0)));
        for second in [0.0, 1.0, 2.0, 3.0] {
            assert!(!fail(&mut breaker, second, None));
            assert_eq!(breaker.next_at(secs(4.0)), Some(secs(4.0)));
        }
        assert!(fail(&mut breaker, 4.0, None));
        assert_eq!(breaker.next_at(secs(4.1)), Some(secs(4.5)));
        let probe = breaker.on_sent(secs(4.5));
        assert_eq!(breaker.next_at(secs(9.0)), None, "one probe at a time");
        let failed = breaker.on_failed(secs(8.0), (earlier[0], secs(0.0)), None);
        assert!(!failed, "sent before the outage");
        assert_eq!(breaker.next_at(secs(9.0)), None, "the probe is still in flight");
        assert!(!breaker.on_failed(secs(9.0), (probe, secs(4.5)), None));
        assert_eq!(breaker.next_at(secs(9.0)), Some(secs(9.65)), "the pause grows");
        breaker.on_sent(secs(9.7));
        assert!(!breaker.on_responded(secs(0.0)), "sent before the outage");
        assert_eq!(breaker.open_since(), Some(secs(4.0)));
        assert!(breaker.on_responded(secs(9.7)));
        assert_eq!(breaker.next_at(secs(10.0)), Some(secs(10.0)));
    }

    #[test]
    fn failures_in_a_row_open_it_at_any_distance() {
        let mut breaker = CircuitBreaker::default();
        breaker.on_sent(secs(0.0));
        for second in [60.0, 120.0, 180.0, 240.0] {
            assert!(!fail(&mut breaker, second, None));
        }
        assert!(fail(&mut breaker, 300.0, None));
    }

    #[test]
    fn failures_of_most_requests_open_it() {
        let mut breaker = CircuitBreaker::default();
        for second in [0.0, 1.0, 2.0, 3.0] {
            assert!(!fail(&mut breaker, second, None));
            breaker.on_sent(secs(second));
        }
        assert!(fail(&mut breaker, 4.0, None));
        let mut breaker = CircuitBreaker::default();
        for second in [0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0] {
            assert!(!fail(&mut breaker, second, None), "spread over a longer time");
            breaker.on_sent(secs(second));
        }
    }

    #[test]
    fn failures_that_overtake_answers_are_no_outage() {
        let mut breaker = CircuitBreaker::default();
        let burst: Vec<u64> = (0..400).map(|_| breaker.on_sent(secs(0.0))).collect();
        for number in burst.iter().step_by(20) {
            assert!(!breaker.on_failed(secs(0.1), (*number, secs(0.0)), None));
        }
        assert_eq!(breaker.open_since(), None);
    }

    #[test]
    fn dropped_probe_is_followed_by_another() {
        let mut breaker = open(None);
        breaker.on_sent(secs(1.0));
        assert_eq!(breaker.next_at(secs(1.0)), None);
        breaker.on_dropped();
        assert_eq!(breaker.next_at(secs(1.0)), Some(secs(0.5)));
    }

    #[test]
    fn announced_wait_delays_probes() {
        let table = [
            (300.0, false, vec![5.0, 13.916, 38.73, 107.791, 300.0, 305.0]),
            (60.0, false, vec![5.0, 10.0, 17.321, 32.237, 60.0, 65.0]),
            (8.0, false, vec![5.0, 8.0, 13.0]),
            (2.0, false, vec![2.0, 4.0]),
            (60.0, true, vec![60.0, 120.0]),
        ];
        for (wait, is_strict, probes) in table {
            let announced = Some(AnnouncedWait { wait: secs(wait), is_strict });
            let mut breaker = open(announced);
            for expected in probes {
                let at = breaker.next_at(secs(0.0)).unwrap();
                assert!((at.as_secs_f64() - expected).abs() < 0.001, "{announced:?}: {at:?}");
                let probe = breaker.on_sent(at);
                breaker.on_failed(at, (probe, at), announced);
            }
        }
    }
}
