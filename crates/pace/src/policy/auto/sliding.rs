//! The hypothesis of a sliding window: at most a number of requests is allowed in any interval of a
//! length. Each request follows the one that it replaces in the window after that length.
//!
//! It is tested when a fixed window was refuted: both open after a silence, but a sliding window frees
//! its places only as fast as they were taken.

use super::ledger::{Ledger, SendPurpose, SentRequest};

/// Correction of the length after a rejection: a share of it, and a minimum in seconds.
const CORRECTION: (f64, f64) = (0.003, 0.01);
/// Sum of corrections, in such steps, that refutes the hypothesis.
const MAX_CORRECTIONS: f64 = 12.0;
/// Share of the corrections that remains after a window without rejections.
const DECAY: f64 = 0.9;
/// Rejections in a row that refute the hypothesis. The delay before the next request doubles each time.
const MAX_REJECTIONS: i32 = 6;
/// Windows and requests between two tests of whether another request fits into the window.
const TEST_EVERY: f64 = 6.0;
const REQUESTS_PER_TEST: f64 = 100.0;

/// A known sliding window.
#[derive(Debug)]
pub(super) struct SlidingHypothesis {
    count: usize,
    /// The length, and the sum of its corrections.
    length: f64,
    correction: f64,
    /// The request that tests whether a place is free after a silence, or whether there is another
    /// place. Nothing else is sent meanwhile.
    canary: Option<u64>,
    /// Admissions since the last rejection, and since the last test.
    clean: f64,
    untested: f64,
    /// Rejections in a row, and the time before which nothing is sent because of them.
    rejections: i32,
    retry_at: f64,
}

impl SlidingHypothesis {
    pub(super) fn new(count: f64, length: f64) -> SlidingHypothesis {
        SlidingHypothesis {
            // A cast from float to integer saturates.
            count: (count as usize).max(1),
            length,
            correction: 0.0,
            canary: None,
            clean: 0.0,
            untested: 0.0,
            rejections: 0,
            retry_at: 0.0,
        }
    }

    /// Returns the requests per window.
    pub(super) fn count(&self) -> f64 {
        self.count as f64
    }

    /// Returns the length in seconds.
    pub(super) fn length(&self) -> f64 {
        self.length
    }

    /// Returns the requests per second.
    pub(super) fn rate(&self) -> f64 {
        self.count() / self.length
    }

    pub(super) fn next(&self, now: f64, ledger: &Ledger) -> Result<SendPurpose, Option<f64>> {
        if self.canary.is_some() {
            return Err(None);
        }
        let free_at = |count: usize| {
            let replaced = ledger.nth_last_accepted(count);
            replaced.map_or(now, |at| at + self.length + self.correction)
        };
        let at = free_at(self.count).max(self.retry_at);
        if at <= now {
            let last = ledger.nth_last_accepted(1).unwrap_or(f64::NEG_INFINITY);
            let is_canary = self.rejections > 0 || at > last + ledger.patience();
            return Ok(if is_canary { SendPurpose::Timed } else { SendPurpose::Work });
        }
        if self.rejections == 0 && self.is_test_due() {
            let test_at = free_at(self.count + 1);
            return if test_at <= now { Ok(SendPurpose::Probe) } else { Err(Some(test_at)) };
        }
        Err(Some(at))
    }

    fn is_test_due(&self) -> bool {
        self.untested >= (TEST_EVERY * self.count()).max(REQUESTS_PER_TEST)
    }

    pub(super) fn on_sent(&mut self, number: u64, purpose: SendPurpose) {
        if purpose != SendPurpose::Work {
            self.canary = Some(number);
        }
    }

    pub(super) fn on_admitted(&mut self, sent: SentRequest) {
        self.on_discarded(sent);
        self.rejections = 0;
        self.untested += 1.0;
        self.clean += 1.0;
        if sent.purpose == SendPurpose::Probe {
            // The next test follows at once.
            self.count += 1;
        }
        if self.clean >= self.count() {
            self.clean = 0.0;
            self.correction *= DECAY;
        }
    }

    /// Handles a rejection; returns whether the hypothesis is refuted.
    pub(super) fn on_rejected(&mut self, now: f64, sent: SentRequest) -> bool {
        self.on_discarded(sent);
        if sent.purpose == SendPurpose::Probe {
            self.untested = 0.0;
            return false;
        }
        let step = CORRECTION.1.max(CORRECTION.0 * self.length);
        self.rejections += 1;
        if self.rejections > 1 {
            // A single one may be random.
            self.clean = 0.0;
            self.correction += step;
        }
        self.retry_at = now + step * 2.0_f64.powi(self.rejections);
        self.rejections >= MAX_REJECTIONS || self.correction > MAX_CORRECTIONS * step
    }

    /// Handles a request that was neither admitted nor rejected.
    pub(super) fn on_discarded(&mut self, sent: SentRequest) {
        if self.canary == Some(sent.number) {
            self.canary = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flight;

    /// Returns a window of four requests in ten seconds, and a ledger with requests sent at these times.
    fn sliding(times: &[f64]) -> (SlidingHypothesis, Ledger) {
        let mut ledger = Ledger::new();
        times.iter().for_each(|at| send(&mut ledger, *at));
        (SlidingHypothesis::new(4.0, 10.0), ledger)
    }

    fn send(ledger: &mut Ledger, at: f64) {
        ledger.send(Flight(ledger.sends()), at, 0, SendPurpose::Work, Default::default());
    }

    fn sent(number: u64, at: f64, purpose: SendPurpose) -> SentRequest {
        SentRequest { number, ..SentRequest::example(at, purpose) }
    }

    #[test]
    fn request_follows_the_one_that_it_replaces() {
        let (sliding, mut ledger) = sliding(&[1.0, 1.1, 4.0, 4.1]);
        assert_eq!(sliding.next(5.0, &ledger), Err(Some(11.0)));
        assert_eq!(sliding.next(11.0, &ledger), Ok(SendPurpose::Timed), "after a silence");
        send(&mut ledger, 11.0);
        assert_eq!(sliding.next(11.0, &ledger), Err(Some(11.1)));
        assert_eq!(sliding.next(11.1, &ledger), Ok(SendPurpose::Work));
        let (sliding, ledger) = self::sliding(&[1.0, 1.1, 4.0]);
        assert!(sliding.next(5.0, &ledger).is_ok(), "one place is free");
    }

    #[test]
    fn nothing_is_sent_until_the_outcome_of_a_canary() {
        let (mut sliding, ledger) = sliding(&[1.0]);
        sliding.on_sent(7, SendPurpose::Timed);
        assert_eq!(sliding.next(50.0, &ledger), Err(None));
        sliding.on_admitted(sent(7, 49.0, SendPurpose::Timed));
        assert!(sliding.next(50.0, &ledger).is_ok());
    }

    #[test]
    fn rejections_delay_requests_and_refute_the_window() {
        let (mut sliding, ledger) = sliding(&[1.0, 1.1, 4.0, 4.1]);
        assert!(!sliding.on_rejected(11.1, sent(4, 11.0, SendPurpose::Work)));
        assert_eq!(sliding.next(11.1, &ledger), Err(Some(11.1 + 2.0 * 0.03)));
        assert!(!sliding.on_rejected(11.3, sent(5, 11.2, SendPurpose::Timed)));
        // The second in a row also lengthens the window.
        assert_eq!(sliding.next(11.3, &ledger), Err(Some(11.3 + 4.0 * 0.03)));
        assert_eq!(sliding.next(13.0, &ledger), Ok(SendPurpose::Timed));
        assert!((sliding.correction - 0.03).abs() < 1e-9);
        let (mut recent, ledger) = self::sliding(&[1.0, 1.05, 4.0, 11.0]);
        assert_eq!(recent.next(11.2, &ledger), Ok(SendPurpose::Work));
        recent.on_rejected(11.1, sent(4, 11.0, SendPurpose::Work));
        assert_eq!(recent.next(11.2, &ledger), Ok(SendPurpose::Timed), "one at a time");
        let refuted = (0..4).map(|_| sliding.on_rejected(20.0, sent(6, 19.0, SendPurpose::Timed)));
        assert_eq!(refuted.collect::<Vec<_>>(), [false, false, false, true]);
    }

    #[test]
    fn another_place_is_tested_now_and_then() {
        let (mut sliding, ledger) = sliding(&[0.9, 1.0, 1.1, 4.0, 4.1]);
        (0..99).for_each(|number| sliding.on_admitted(sent(number, 1.0, SendPurpose::Work)));
        assert_eq!(sliding.next(10.95, &ledger), Err(Some(11.0)));
        sliding.on_admitted(sent(99, 1.0, SendPurpose::Work));
        assert_eq!(sliding.next(10.95, &ledger), Ok(SendPurpose::Probe));
        sliding.on_admitted(sent(100, 10.95, SendPurpose::Probe));
        assert_eq!(sliding.count(), 5.0);
        assert!(!sliding.on_rejected(12.0, sent(101, 11.0, SendPurpose::Probe)));
        assert_eq!(sliding.count(), 5.0);
        assert!(!sliding.is_test_due());
    }
}
