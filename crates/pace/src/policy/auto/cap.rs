//! The hypothesis of a cap: a maximum number of requests in flight.
//!
//! Under a cap a request is admitted exactly if a slot is free. Two cheap tests contradict the
//! hypothesis: a request rejected below the cap, and a request admitted at the cap. Every request is such
//! a test until enough of them have confirmed the cap.

use super::ledger::{SendPurpose, SentRequest};

/// Contradictions that refute the cap. One is not enough: an answer in transit can cause it.
const REFUTATION_THRESHOLD: f64 = 1.9;
/// Weight of a contradiction if a raised cap turns out to be wrong.
const MISTAKE_WEIGHT: f64 = 0.6;
/// Weight of a rejection that requests and answers in transit may explain.
const TRANSIT_WEIGHT: f64 = 0.3;
/// A confirmed cap does not shrink below this share of itself at once.
const MIN_SHRUNK_SHARE: f64 = 0.8;
/// Requests and answers in transit that do not contradict a cap.
const MAX_IN_TRANSIT: u32 = 2;
/// Number of tests that confirm the cap.
const MIN_CONFIRMATIONS: u32 = 7;
/// Seconds until the first timed test; the delay doubles each time.
const FIRST_TIMED_S: f64 = 0.1;
/// A test whose rejection blocks the pool for longer is too expensive.
const LONG_BLOCK_S: f64 = 5.0;
/// Clean answers between two probes above the cap: initial and maximum number, number per slot of a
/// small cap, and number after a successful probe.
const PROBE_INTERVAL: (f64, f64) = (40.0, 200.0);
const ANSWERS_PER_SLOT: f64 = 10.0;
const ANSWERS_AFTER_GROWTH: f64 = 8.0;
/// Answers between two probes, as a multiple of what a rejected probe costs.
const PROBE_COST_FACTOR: f64 = 10.0;

/// The estimated cap and the state of its tests.
#[derive(Debug)]
pub(super) struct CapHypothesis {
    width: u32,
    /// The level of the first rejection.
    first_level: u32,
    /// The width before the last rejections.
    previous_width: u32,
    contradictions: f64,
    confirmations: u32,
    is_confirmed: bool,
    /// The width that an earlier run learned.
    remembered: Option<u32>,
    /// Whether this run has filled the cap and met a rejection at it.
    is_measured: bool,
    /// Tests in flight.
    tests: u32,
    next_timed: f64,
    timed_delay: f64,
    /// Seconds for which a rejection blocks the pool.
    block: f64,
    /// Clean answers until the next probe, and between two probes.
    until_probe: f64,
    interval: f64,
    is_probing: bool,
    /// The width before the last successful probe, as long as that may be a mistake.
    before: Option<u32>,
    last_sent: f64,
}

/// The result of a test of the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CapTest {
    /// The cap is consistent with all tests.
    Holds,
    /// The limit is not a cap.
    Refuted,
}

impl CapHypothesis {
    /// Creates a cap after a rejection at that level, which blocks the pool for `block` seconds.
    pub(super) fn new(level: u32, now: f64, block: f64) -> CapHypothesis {
        CapHypothesis {
            width: level.max(1),
            first_level: level,
            previous_width: level.max(1),
            contradictions: 0.0,
            confirmations: 0,
            is_confirmed: false,
            remembered: None,
            is_measured: false,
            tests: 0,
            next_timed: now + FIRST_TIMED_S,
            timed_delay: FIRST_TIMED_S,
            block,
            until_probe: (ANSWERS_PER_SLOT * f64::from(level.max(1))).min(PROBE_INTERVAL.0),
            interval: (ANSWERS_PER_SLOT * f64::from(level.max(1))).min(PROBE_INTERVAL.0),
            is_probing: false,
            before: None,
            last_sent: now,
        }
    }

    /// Creates a confirmed cap that an earlier run learned.
    pub(super) fn known(width: u32) -> CapHypothesis {
        let cap = CapHypothesis::new(width, 0.0, 0.0);
        CapHypothesis { is_confirmed: true, remembered: Some(width), ..cap }
    }

    pub(super) fn width(&self) -> u32 {
        self.width
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Returns whether the cap is the one that an earlier run learned, and no larger one was found.
    pub(super) fn is_remembered(&self) -> bool {
        self.remembered == Some(self.width)
    }

    /// Returns whether measurements of this run have confirmed the cap.
    pub(super) fn is_measured(&self) -> bool {
        self.is_confirmed && self.is_measured
    }

    /// Returns the purpose of the next request, or the time at which it may be sent, or `None` if an
    /// event has to occur first.
    pub(super) fn next(
        &self,
        now: f64,
        level: u32,
        latency: f64,
    ) -> Result<SendPurpose, Option<f64>> {
        let has_free_slot = level < self.width;
        let wait_until = |at: f64, purpose| if now >= at { Ok(purpose) } else { Err(Some(at)) };
        if self.is_confirmed {
            if has_free_slot {
                return Ok(SendPurpose::Work);
            }
            if self.until_probe > 0.0 || self.is_probing || level > self.width {
                return Err(None);
            }
            // Right after another request, a bucket that holds one request would reject it.
            let at = self.last_sent + 0.85 * latency / f64::from(self.width);
            return wait_until(at, SendPurpose::Probe);
        }
        // If many slots are free, they are not filled at once.
        let batch = self.confirmations.max(1);
        match self.tests {
            tests if tests >= batch => Err(None),
            _ if has_free_slot => Ok(SendPurpose::Clocked),
            0 if self.block < LONG_BLOCK_S => wait_until(self.next_timed, SendPurpose::Timed),
            _ => Err(None),
        }
    }

    pub(super) fn on_sent(&mut self, now: f64, purpose: SendPurpose) {
        self.last_sent = now;
        match purpose {
            SendPurpose::Work | SendPurpose::Burst => {}
            SendPurpose::Clocked => self.tests += 1,
            SendPurpose::Timed => {
                self.tests += 1;
                self.timed_delay *= 2.0;
                self.next_timed = now + self.timed_delay;
            }
            SendPurpose::Probe => self.is_probing = true,
        }
    }

    pub(super) fn on_admitted(&mut self, now: f64, sent: SentRequest) -> CapTest {
        self.contradictions *= 0.99;
        self.on_ended(sent.purpose);
        match sent.purpose {
            SendPurpose::Work | SendPurpose::Burst => {}
            SendPurpose::Clocked => {
                self.confirmations += 1;
                let is_full = sent.level + 1 >= self.width;
                if is_full && self.confirmations >= MIN_CONFIRMATIONS {
                    self.is_confirmed = true;
                    self.is_measured = true;
                }
            }
            SendPurpose::Timed => {
                self.contradictions += 1.0;
                self.width = self.width.max(sent.level + 1);
                self.restart_timed_tests(now);
            }
            SendPurpose::Probe => {
                self.before = Some(self.width);
                self.width += 1;
                self.until_probe = ANSWERS_AFTER_GROWTH;
            }
        }
        self.test()
    }

    /// Handles an answer to a first attempt.
    pub(super) fn on_answered(&mut self) {
        self.until_probe -= 1.0;
    }

    /// Ends the test of a request.
    pub(super) fn on_ended(&mut self, purpose: SendPurpose) {
        match purpose {
            SendPurpose::Work | SendPurpose::Burst => {}
            SendPurpose::Clocked | SendPurpose::Timed => self.tests = self.tests.saturating_sub(1),
            SendPurpose::Probe => self.is_probing = false,
        }
    }

    /// Handles a rejection. `is_news` tells whether the request was sent after the last reaction,
    /// `block` is the time in which nothing is sent because of it, `latency` that of answers.
    pub(super) fn on_rejected(
        &mut self,
        now: f64,
        sent: SentRequest,
        is_news: bool,
        block: f64,
        latency: f64,
    ) -> CapTest {
        self.block = block;
        self.on_ended(sent.purpose);
        if is_news {
            self.previous_width = self.width;
        }
        let before = self.before.take_if(|before| sent.level >= *before);
        match (sent.purpose, before) {
            (SendPurpose::Work | SendPurpose::Clocked, Some(before)) => {
                // The probe was admitted only because an answer in transit had freed a slot.
                self.width = before;
                self.until_probe = self.interval;
                self.contradictions += MISTAKE_WEIGHT;
            }
            (SendPurpose::Probe, _) => {
                self.is_measured = true;
                let lost = self.block * f64::from(self.width) / latency.max(1e-3);
                self.interval =
                    (1.4 * self.interval).min(PROBE_INTERVAL.1).max(PROBE_COST_FACTOR * lost);
                self.until_probe = self.interval;
            }
            (SendPurpose::Work | SendPurpose::Clocked, _) if !is_news => {
                // The number of free slots does not fall while answers arrive.
                if self.is_confirmed
                    && f64::from(sent.level) < MIN_SHRUNK_SHARE * f64::from(self.previous_width)
                {
                    self.contradictions += 1.0;
                }
                self.width = self.width.min(sent.level.max(1));
            }
            (SendPurpose::Work | SendPurpose::Clocked, _)
                if sent.level + self.slack() < self.expected_width() =>
            {
                self.contradictions += 1.0;
                self.confirmations = 0;
                self.is_confirmed = false;
                self.restart_timed_tests(now);
            }
            (SendPurpose::Work | SendPurpose::Clocked, _) if sent.level < self.width => {
                self.contradictions += TRANSIT_WEIGHT;
                if !self.is_confirmed {
                    // More requests seemed to be in flight at the first rejection than there were.
                    self.width = sent.level.max(1);
                }
            }
            _ => {}
        }
        self.test()
    }

    /// Returns the width that tests have to agree with.
    fn expected_width(&self) -> u32 {
        if self.is_confirmed { self.width } else { self.width.max(self.first_level) }
    }

    /// Returns the number of slots that may differ from those of the provider, because requests and
    /// answers are in transit.
    fn slack(&self) -> u32 {
        (self.width / 50).max(MAX_IN_TRANSIT.min(self.width / 5))
    }

    fn restart_timed_tests(&mut self, now: f64) {
        self.timed_delay = FIRST_TIMED_S;
        self.next_timed = now + FIRST_TIMED_S;
    }

    fn test(&self) -> CapTest {
        if self.contradictions >= REFUTATION_THRESHOLD { CapTest::Refuted } else { CapTest::Holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: f64, level: u32, purpose: SendPurpose) -> SentRequest {
        SentRequest { level, ..SentRequest::example(at, purpose) }
    }

    #[test]
    fn admissions_into_free_slots_confirm_the_cap() {
        let mut cap = CapHypothesis::new(12, 0.0, 0.0);
        for number in 0..MIN_CONFIRMATIONS {
            let now = 1.0 + f64::from(number);
            assert_eq!(cap.next(now, 11, 1.0), Ok(SendPurpose::Clocked));
            cap.on_sent(now, SendPurpose::Clocked);
            let test = cap.on_admitted(now + 0.1, sent(now, 11, SendPurpose::Clocked));
            assert_eq!(test, CapTest::Holds);
        }
        assert!(cap.is_confirmed());
        assert_eq!(cap.next(20.0, 11, 1.0), Ok(SendPurpose::Work));
        assert_eq!(cap.next(20.0, 12, 1.0), Err(None));
    }

    #[test]
    fn two_rejections_below_the_cap_refute_it() {
        let mut cap = CapHypothesis::new(12, 0.0, 0.0);
        let reject = |cap: &mut CapHypothesis, now: f64| {
            cap.on_sent(now, SendPurpose::Clocked);
            cap.on_rejected(now + 0.1, sent(now, 8, SendPurpose::Clocked), true, 0.0, 1.0)
        };
        assert_eq!(reject(&mut cap, 1.0), CapTest::Holds);
        assert_eq!(reject(&mut cap, 2.0), CapTest::Refuted);
    }

    #[test]
    fn two_timed_admissions_refute_the_cap() {
        let mut cap = CapHypothesis::new(12, 0.0, 0.0);
        assert_eq!(cap.next(0.0, 12, 1.0), Err(Some(0.1)));
        let mut now = 0.1;
        for _ in 0..5 {
            cap.on_sent(now, SendPurpose::Timed);
            let rejected = sent(now, 12, SendPurpose::Timed);
            assert_eq!(cap.on_rejected(now, rejected, true, 0.0, 1.0), CapTest::Holds);
            let Err(Some(next)) = cap.next(now, 12, 1.0) else { panic!("a later time") };
            assert!(next > now, "the delay grows");
            now = next;
        }
        let admitted =
            |cap: &mut CapHypothesis| cap.on_admitted(now, sent(now, 12, SendPurpose::Timed));
        assert_eq!(admitted(&mut cap), CapTest::Holds);
        assert_eq!(admitted(&mut cap), CapTest::Refuted);
    }

    #[test]
    fn probe_above_the_cap_follows_clean_answers() {
        let mut cap = CapHypothesis::known(10);
        (0..40).for_each(|_| cap.on_answered());
        assert_eq!(cap.next(100.0, 10, 1.0), Ok(SendPurpose::Probe));
        cap.on_sent(100.0, SendPurpose::Probe);
        cap.on_admitted(100.1, sent(100.0, 10, SendPurpose::Probe));
        assert_eq!(cap.width(), 11);
        // The next probe is rejected, so the following one waits longer.
        (0..10).for_each(|_| cap.on_answered());
        assert_eq!(cap.next(120.0, 11, 1.0), Ok(SendPurpose::Probe));
        cap.on_sent(120.0, SendPurpose::Probe);
        let rejected = sent(120.0, 11, SendPurpose::Probe);
        assert_eq!(cap.on_rejected(120.1, rejected, true, 0.0, 1.0), CapTest::Holds);
        assert_eq!(cap.width(), 11);
        assert_eq!(cap.next(121.0, 11, 1.0), Err(None));
    }

    #[test]
    fn mistaken_growth_is_reverted() {
        let mut cap = CapHypothesis::known(10);
        let more = |cap: &mut CapHypothesis| {
            cap.on_sent(100.0, SendPurpose::Probe);
            cap.on_admitted(100.1, sent(100.0, 10, SendPurpose::Probe));
            assert_eq!(cap.width(), 11);
            cap.on_rejected(101.0, sent(100.9, 10, SendPurpose::Work), true, 0.0, 1.0)
        };
        assert_eq!(more(&mut cap), CapTest::Holds);
        assert_eq!(cap.width(), 10);
        assert!(cap.is_confirmed(), "no request was rejected below the cap");
        (0..39).for_each(|_| cap.on_answered());
        assert_eq!(
            cap.next(200.0, 10, 1.0),
            Err(None),
            "the next probe waits for the full interval"
        );
        // Repeated mistakes refute the cap.
        assert_eq!(more(&mut cap), CapTest::Holds);
        assert_eq!(more(&mut cap), CapTest::Holds);
        assert_eq!(more(&mut cap), CapTest::Refuted);
    }

    #[test]
    fn sudden_shrink_of_a_confirmed_cap_refutes_it() {
        let straggler = |cap: &mut CapHypothesis, level, is_news| {
            cap.on_rejected(1.0, sent(0.9, level, SendPurpose::Work), is_news, 0.0, 1.0)
        };
        // Another client takes a few slots: requests after the first rejection are rejected, too.
        let mut cap = CapHypothesis::known(20);
        straggler(&mut cap, 20, true);
        (16..20)
            .rev()
            .for_each(|level| assert_eq!(straggler(&mut cap, level, false), CapTest::Holds));
        assert_eq!(cap.width(), 16);
        assert_eq!(straggler(&mut cap, 15, false), CapTest::Holds);
        assert_eq!(straggler(&mut cap, 14, false), CapTest::Refuted);
    }

    #[test]
    fn answers_in_transit_do_not_contradict_the_cap() {
        for (width, level, is_free) in
            [(200, 196, false), (200, 195, true), (49, 47, false), (49, 46, true), (4, 3, true)]
        {
            let mut cap = CapHypothesis::known(width);
            cap.on_rejected(1.0, sent(0.9, level, SendPurpose::Work), true, 0.0, 1.0);
            assert_eq!(!cap.is_confirmed(), is_free, "{level} of {width}");
        }
    }
}
