//! The hypothesis that so many may be in flight and no more.
//!
//! Under a cap a request is let in exactly when a place is free. Two cheap experiments contradict
//! it: one that bounces although a place is free, and one that is let in although none is. Until
//! enough of them have agreed with the cap, every request is such an experiment.

use super::ledger::{Purpose, Sent};

/// Contradictions that refute the cap. Two: an answer on its way back can fake one.
const REFUTED: f64 = 1.9;
/// Experiments that confirm it.
const CONFIRMED: u32 = 7;
/// Successes between two looks for more room, at first and at most.
const FIRST_INTERVAL: f64 = 40.0;
const LAST_INTERVAL: f64 = 200.0;

#[derive(Debug)]
pub(super) struct Cap {
    width: u32,
    contradictions: f64,
    confirmations: u32,
    /// Experiments under way.
    tests: u32,
    next_timed: f64,
    timed_delay: f64,
    /// Clean successes since the last look for more room.
    clean: f64,
    interval: f64,
    step: u32,
    probing: u32,
    raised: Option<(f64, u32)>,
    last_sent: f64,
    /// Successes per second.
    rate: f64,
    answered_at: f64,
}

/// What a rejection means under this hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is a cap, as far as is known.
    Holds,
    /// It is not a cap.
    Refuted,
}

impl Cap {
    /// A request bounced with so many in flight.
    pub(super) fn new(level: u32, now: f64, contradictions: f64) -> Cap {
        Cap {
            width: level.max(1),
            contradictions,
            confirmations: 0,
            tests: 0,
            next_timed: now + 0.1,
            timed_delay: 0.1,
            clean: 0.0,
            interval: FIRST_INTERVAL,
            step: 1,
            probing: 0,
            raised: None,
            last_sent: now,
            rate: 0.0,
            answered_at: now,
        }
    }

    /// A cap that an earlier run has found.
    pub(super) fn known(width: u32) -> Cap {
        Cap { confirmations: CONFIRMED, ..Cap::new(width, 0.0, 0.0) }
    }

    pub(super) fn width(&self) -> u32 {
        self.width
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmations >= CONFIRMED
    }

    fn batch(&self) -> u32 {
        match self.confirmations {
            0 => 1,
            1..3 => 2,
            _ => 4,
        }
    }

    /// Why the next request may go out, or when it may; `None` when something has to happen
    /// first.
    pub(super) fn next(&self, now: f64, level: u32, latency: f64) -> Result<Purpose, Option<f64>> {
        if self.is_confirmed() {
            if level < self.width {
                return Ok(Purpose::Work);
            }
            let due = self.clean >= self.interval && self.probing < self.step;
            if due && level < self.width + self.step {
                // Right behind another one it would fail on any bucket of one.
                let at = self.last_sent + 0.85 * latency / f64::from(self.width);
                return if now >= at { Ok(Purpose::Probe) } else { Err(Some(at)) };
            }
            return Err(None);
        }
        if self.tests >= self.batch() {
            return Err(None);
        }
        if level < self.width {
            return Ok(Purpose::Clocked);
        }
        if self.tests > 0 {
            return Err(None);
        }
        if now >= self.next_timed { Ok(Purpose::Timed) } else { Err(Some(self.next_timed)) }
    }

    pub(super) fn sent(&mut self, now: f64, purpose: Purpose) {
        self.last_sent = now;
        match purpose {
            Purpose::Work => {}
            Purpose::Clocked | Purpose::Timed => self.tests += 1,
            Purpose::Probe => self.probing += 1,
        }
        if purpose == Purpose::Timed {
            self.timed_delay *= 2.0;
            self.next_timed = now + self.timed_delay;
        }
    }

    pub(super) fn admitted(&mut self, now: f64, sent: Sent) -> Verdict {
        self.contradictions *= 0.99;
        match sent.purpose {
            Purpose::Work => {}
            Purpose::Clocked => {
                self.tests = self.tests.saturating_sub(1);
                self.confirmations += 1;
            }
            Purpose::Timed => {
                self.tests = self.tests.saturating_sub(1);
                self.contradictions += 1.0;
                self.width = self.width.max(sent.level + 1);
                self.timed_delay = 0.1;
                self.next_timed = now + self.timed_delay;
            }
            Purpose::Probe => {
                self.probing = self.probing.saturating_sub(1);
                if self.probing == 0 {
                    self.raised = Some((now, self.width));
                    self.width += self.step;
                    self.step = (self.step * 2).min((self.width / 4).max(1));
                    self.clean = self.interval - 8.0;
                }
            }
        }
        self.verdict()
    }

    pub(super) fn answered(&mut self, now: f64, is_clean: bool) {
        let gap = (now - self.answered_at).max(1e-6);
        self.answered_at = now;
        let share = (gap / 3.0).min(1.0);
        self.rate += share * (1.0 / gap - self.rate);
        if is_clean {
            self.clean += 1.0;
        }
    }

    /// A request ended that was neither let in nor rejected.
    pub(super) fn voided(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Work => {}
            Purpose::Clocked | Purpose::Timed => self.tests = self.tests.saturating_sub(1),
            Purpose::Probe => self.probing = self.probing.saturating_sub(1),
        }
    }

    /// A request bounced; `is_news` when it went out after the last reaction.
    pub(super) fn bounced(
        &mut self,
        now: f64,
        sent: Sent,
        is_news: bool,
        cost: f64,
        was_open: bool,
    ) -> Verdict {
        if was_open && is_news {
            self.contradictions += 1.0;
            if self.verdict() == Verdict::Refuted {
                return Verdict::Refuted;
            }
        }
        match sent.purpose {
            Purpose::Probe => {
                self.probing = self.probing.saturating_sub(1);
                self.step = 1;
                self.clean = 0.0;
                self.interval = (self.interval * 1.4).min(LAST_INTERVAL);
                self.interval = self.interval.max(50.0 * cost * self.rate);
                return Verdict::Holds;
            }
            Purpose::Timed => {
                self.tests = self.tests.saturating_sub(1);
                return Verdict::Holds;
            }
            Purpose::Clocked => self.tests = self.tests.saturating_sub(1),
            Purpose::Work => {}
        }
        if let Some((at, before)) = self.raised.take()
            && now - at < 3.0
        {
            // It was let in with more in flight a moment ago, which a cap would not do, unless an
            // answer on its way back made room for it.
            self.width = before;
            self.step = 1;
            self.clean = 0.5 * self.interval;
            self.contradictions += 0.6;
            return self.verdict();
        }
        if !is_news {
            self.width = self.width.min(sent.level.max(1));
            return Verdict::Holds;
        }
        if sent.level >= self.width {
            return Verdict::Holds;
        }
        self.contradictions += 1.0;
        self.confirmations = 0;
        self.timed_delay = 0.1;
        self.next_timed = now + self.timed_delay;
        self.verdict()
    }

    fn verdict(&self) -> Verdict {
        if self.contradictions >= REFUTED { Verdict::Refuted } else { Verdict::Holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: f64, level: u32, purpose: Purpose) -> Sent {
        Sent {
            at,
            number: 0,
            level,
            gap: 0.1,
            purpose,
            is_admitted: false,
            stamps: Default::default(),
            tokens: 1.0,
            accepted: Default::default(),
        }
    }

    #[test]
    fn places_that_became_free_and_can_be_used_confirm_it() {
        let mut cap = Cap::new(12, 0.0, 0.0);
        for number in 0..CONFIRMED {
            let now = 1.0 + f64::from(number);
            assert_eq!(cap.next(now, 11, 1.0), Ok(Purpose::Clocked));
            cap.sent(now, Purpose::Clocked);
            let verdict = cap.admitted(now + 0.1, sent(now, 11, Purpose::Clocked));
            assert_eq!(verdict, Verdict::Holds);
        }
        assert!(cap.is_confirmed());
        assert_eq!(cap.next(20.0, 11, 1.0), Ok(Purpose::Work));
        assert_eq!(cap.next(20.0, 12, 1.0), Err(None));
    }

    #[test]
    fn a_free_place_that_cannot_be_used_contradicts_it_and_two_refute_it() {
        let mut cap = Cap::new(12, 0.0, 0.0);
        let bounced = |cap: &mut Cap, now: f64| {
            cap.sent(now, Purpose::Clocked);
            cap.bounced(now + 0.1, sent(now, 10, Purpose::Clocked), true, 0.0, false)
        };
        assert_eq!(bounced(&mut cap, 1.0), Verdict::Holds);
        assert_eq!(bounced(&mut cap, 2.0), Verdict::Refuted);
    }

    #[test]
    fn time_alone_makes_no_room_under_a_cap() {
        let mut cap = Cap::new(12, 0.0, 0.0);
        assert_eq!(cap.next(0.0, 12, 1.0), Err(Some(0.1)));
        let mut now = 0.1;
        for _ in 0..5 {
            cap.sent(now, Purpose::Timed);
            let bounce = sent(now, 12, Purpose::Timed);
            assert_eq!(cap.bounced(now, bounce, true, 0.0, false), Verdict::Holds);
            let Err(Some(next)) = cap.next(now, 12, 1.0) else { panic!("a later time") };
            assert!(next > now, "each one later");
            now = next;
        }
        let admitted = |cap: &mut Cap| cap.admitted(now, sent(now, 12, Purpose::Timed));
        assert_eq!(admitted(&mut cap), Verdict::Holds);
        assert_eq!(admitted(&mut cap), Verdict::Refuted);
    }

    #[test]
    fn after_a_while_it_looks_for_more_room() {
        let mut cap = Cap::known(10);
        (0..40).for_each(|second| cap.answered(f64::from(second), true));
        assert_eq!(cap.next(100.0, 10, 1.0), Ok(Purpose::Probe));
        cap.sent(100.0, Purpose::Probe);
        cap.admitted(100.1, sent(100.0, 10, Purpose::Probe));
        assert_eq!(cap.width(), 11);
        // The next one bounces, and the one after that has to wait longer.
        (0..10).for_each(|second| cap.answered(101.0 + f64::from(second), true));
        assert_eq!(cap.next(120.0, 11, 1.0), Ok(Purpose::Probe));
        cap.sent(120.0, Purpose::Probe);
        let bounce = sent(120.0, 11, Purpose::Probe);
        assert_eq!(cap.bounced(120.1, bounce, true, 0.0, false), Verdict::Holds);
        assert_eq!(cap.width(), 11);
        assert_eq!(cap.next(121.0, 11, 1.0), Err(None));
    }
}
