//! The hypothesis that headers tell the truth: a copy of the provider's bucket.
//!
//! Every send is charged to the copy. A response says what was left when its request was admitted;
//! the difference from what the copy held at that moment corrects it, so neither latency nor other
//! users of the same quota lead it astray.

use super::boundary::Boundary;
use crate::{Dimension, QuotaReading};

/// How much of a difference is believed at once: a rounded number is off by half a unit.
const GAIN: f64 = 0.4;
/// How much of a newly measured rate is believed, and what it must rest on: seconds and requests.
const RATE_GAIN: f64 = 0.3;
const SLOPE_S: f64 = 1.0;
const SLOPE_REQUESTS: f64 = 8.0;
/// How much one request counts towards what they usually cost.
const SURPLUS_GAIN: f64 = 0.1;
/// What is left of fewer requests is nearly always nothing; with resets in whole seconds, of fewer
/// than the second.
const MIN_LIMIT: (f64, f64) = (5.0, 6.0);
/// Longer waits are cut short by a request that sees for itself.
const MAX_WAIT_S: f64 = 30.0;
/// So many answers in a row that nothing is left are a lie.
const MAX_ZEROS: u32 = 100;
/// What is missing by rounding only.
const TOLERANCE: f64 = 1e-6;

/// What the copy held when a request went out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MirrorStamp {
    balance: f64,
    correction: f64,
    spent: f64,
    /// What it was estimated to cost, and what was charged for it.
    estimate: f64,
    cost: f64,
    /// There was a copy already.
    is_valid: bool,
}

impl MirrorStamp {
    /// What was charged for the request.
    pub(super) fn cost(self) -> f64 {
        self.cost
    }

    /// The same for a request that was rejected, and so has not spent anything.
    pub(super) fn unspent(self) -> MirrorStamp {
        MirrorStamp { spent: self.spent - self.cost, ..self }
    }
}

#[derive(Debug)]
pub(super) struct QuotaMirror {
    dimension: Dimension,
    /// The copy; none before a header has said something.
    state: Option<MirrorState>,
    /// Everything ever charged.
    spent: f64,
    /// By how much requests have lately cost more than was estimated.
    surplus: f64,
    /// Answers in a row that said there is nothing left, and yet the next was let in.
    zeros: u32,
}

#[derive(Debug)]
struct MirrorState {
    /// The most there can be.
    limit: f64,
    rate: f64,
    balance: f64,
    at: f64,
    sent_at: f64,
    /// The sum of all corrections.
    correction: f64,
    typical_cost: f64,
    /// Rejections that the headers explained.
    explained: f64,
    /// An earlier response to measure the rate from.
    anchor: Anchor,
    boundary: Boundary,
}

#[derive(Debug, Clone, Copy)]
struct Anchor {
    at: f64,
    remaining: f64,
    spent: f64,
}

impl QuotaMirror {
    pub(super) fn new(dimension: Dimension) -> QuotaMirror {
        QuotaMirror { dimension, state: None, spent: 0.0, surplus: 0.0, zeros: 0 }
    }

    pub(super) fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// When there is enough for a request that costs about so much.
    pub(super) fn next_at(&mut self, now: f64, estimate: f64) -> f64 {
        let cost = estimate + self.surplus;
        let Some(state) = &mut self.state else { return now };
        state.advance(now);
        let least = cost.min(state.limit) - TOLERANCE;
        let need = (cost + state.margin()).min(0.98 * state.limit).max(least);
        if state.balance >= need {
            return now;
        }
        let wait = (need - state.balance) / state.rate;
        let latest = now.max(state.sent_at + MAX_WAIT_S);
        state.boundary.next_at(now).unwrap_or((now + wait.max(1e-4)).min(latest))
    }

    pub(super) fn on_sent(&mut self, now: f64, estimate: f64) -> MirrorStamp {
        let cost = estimate + self.surplus;
        self.spent += cost;
        let spent = self.spent;
        let Some(state) = &mut self.state else {
            return MirrorStamp { spent, estimate, cost, ..MirrorStamp::default() };
        };
        state.advance(now);
        state.balance -= cost;
        state.sent_at = now;
        state.typical_cost += 0.05 * (cost - state.typical_cost);
        let (balance, correction) = (state.balance, state.correction);
        MirrorStamp { balance, correction, spent, estimate, cost, is_valid: true }
    }

    /// A request has really cost so much.
    pub(super) fn settle(&mut self, stamp: MirrorStamp, usage: f64) {
        self.surplus += SURPLUS_GAIN * (usage - stamp.estimate - self.surplus);
        self.surplus = self.surplus.max(0.0);
        self.refund(stamp.cost - usage);
    }

    /// What was charged was too much by this.
    pub(super) fn refund(&mut self, amount: f64) {
        self.spent -= amount;
        if let Some(state) = &mut self.state {
            state.balance = (state.balance + amount).min(state.limit);
            state.correction += amount;
        }
    }

    /// A response to a request that went out at `sent_at` says something.
    pub(super) fn observe(
        &mut self,
        now: f64,
        sent_at: f64,
        stamp: MirrorStamp,
        reading: &QuotaReading,
    ) {
        self.zeros = if reading.remaining < 1.0 { self.zeros.saturating_add(1) } else { 0 };
        if self.zeros >= MAX_ZEROS {
            // Whatever these headers mean, it is not this.
            self.state = None;
        }
        if self.zeros >= MAX_ZEROS
            || reading.limit < if reading.coarse { MIN_LIMIT.1 } else { MIN_LIMIT.0 }
        {
            return;
        }
        let since = self.spent - stamp.spent;
        let used = reading.limit - reading.remaining;
        // A date means the same whenever it is read; a duration counts from the sending.
        let late = if reading.coarse { now - sent_at } else { 0.0 };
        let reset = reading.reset.map(|reset| reset.as_secs_f64() + late);
        let anchor = Anchor { at: sent_at, remaining: reading.remaining, spent: stamp.spent };
        let Some(state) = &mut self.state else {
            // What has not been used says nothing about how it is refilled.
            let Some(reset) = reset.filter(|reset| *reset > 0.0 && used > 0.0) else { return };
            let rate = used / if reading.coarse { (reset - 0.5).max(0.25) } else { reset };
            let balance = reading.remaining - since + rate * (now - sent_at);
            self.state = Some(MirrorState {
                limit: reading.limit,
                rate,
                balance: balance.clamp(-0.2 * reading.limit, reading.limit),
                at: now,
                sent_at: now,
                correction: 0.0,
                typical_cost: stamp.cost.max(1.0),
                explained: 0.0,
                anchor,
                boundary: Boundary::Unknown { end: sent_at + reset, used },
            });
            return;
        };
        state.advance(now);
        state.limit = reading.limit;
        if let Some(reset) = reset {
            let is_new = state.boundary.look(sent_at + reset, used, state.rate, reading.coarse);
            if is_new {
                state.balance = state.limit;
            }
        }
        if let Boundary::Window { .. } = state.boundary {
            // The present window's count only; an older response is about an older window.
            if sent_at + reset.unwrap_or(0.0) > now {
                state.balance = state.balance.min(reading.remaining - since);
            }
            return;
        }
        state.measure(anchor);
        if stamp.is_valid {
            state.correct(stamp, reading);
        }
    }

    /// Whether a rejection is explained by what was left; then the copy knows better from now on.
    pub(super) fn explains(
        &mut self,
        now: f64,
        sent_at: f64,
        stamp: MirrorStamp,
        reading: &QuotaReading,
    ) -> bool {
        let Some(state) = &mut self.state else { return false };
        self.zeros = 0;
        // What an answer costs is only estimated, and can be more than was left.
        let most = if self.dimension == Dimension::Requests { 1.0 } else { 3.0 * stamp.cost };
        if reading.remaining >= most {
            return false;
        }
        state.explained += 1.0;
        let refilled = match state.boundary {
            Boundary::Window { .. } => 0.0,
            _ => state.rate * (now - sent_at),
        };
        let left = reading.remaining - (self.spent - stamp.spent) + refilled;
        state.balance = state.balance.min(left);
        true
    }
}

impl MirrorState {
    fn advance(&mut self, now: f64) {
        if let Boundary::Window { .. } = self.boundary {
            if self.boundary.advance(now) {
                self.balance = self.limit;
            }
            if self.boundary.is_probe_due(now) {
                self.balance = self.balance.max(self.typical_cost);
            }
        } else {
            self.balance = (self.balance + self.rate * (now - self.at)).min(self.limit);
        }
        self.at = now;
    }

    /// What is held back for what is not known exactly.
    fn margin(&self) -> f64 {
        if let Boundary::Window { .. } = self.boundary {
            return 0.0;
        }
        ((1.0 + 0.5 * self.explained) * self.typical_cost).min(0.25 * self.limit)
    }

    /// What was spent and what is left now tell how much was refilled since the anchor.
    fn measure(&mut self, new: Anchor) {
        let old = self.anchor;
        let (seconds, spent) = (new.at - old.at, new.spent - old.spent);
        if seconds < SLOPE_S || spent < SLOPE_REQUESTS * self.typical_cost {
            return;
        }
        let measured = (new.remaining - old.remaining + spent) / seconds;
        if measured > 0.0 {
            self.rate += RATE_GAIN * (measured - self.rate);
        }
        self.anchor = new;
    }

    /// A response says what was left when its request was admitted.
    fn correct(&mut self, stamp: MirrorStamp, reading: &QuotaReading) {
        let expected = stamp.balance + self.correction - stamp.correction;
        // Counts are rounded down, and so half a unit short on average.
        let half = 0.5_f64.min(stamp.cost / 2.0);
        let error = GAIN * (reading.remaining + half - expected);
        self.balance = (self.balance + error).min(self.limit);
        self.correction += error;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// So many of a hundred are left, and all are there again after so many seconds.
    fn reading(remaining: f64, reset: f64) -> QuotaReading {
        QuotaReading {
            dimension: Dimension::Requests,
            limit: 100.0,
            remaining,
            reset: Some(Duration::from_secs_f64(reset)),
            coarse: false,
        }
    }

    /// Ten of a hundred are left at 0, and two come each second.
    fn mirror(dimension: Dimension) -> QuotaMirror {
        let mut mirror = QuotaMirror::new(dimension);
        let stamp = mirror.on_sent(0.0, 1.0);
        mirror.observe(0.0, 0.0, stamp, &reading(10.0, 45.0));
        mirror
    }

    fn send(mirror: &mut QuotaMirror, count: u32, now: f64) {
        for _ in 0..count {
            mirror.on_sent(now, 1.0);
        }
    }

    #[track_caller]
    fn assert_copy(mirror: &QuotaMirror, balance: f64, rate: f64) {
        let state = mirror.state.as_ref().unwrap();
        assert!((state.balance - balance).abs() < 1e-9, "{} for {balance}", state.balance);
        assert!((state.rate - rate).abs() < 1e-9, "{} for {rate}", state.rate);
    }

    #[test]
    fn answers_that_always_say_that_nothing_is_left_are_not_believed() {
        let mut mirror = QuotaMirror::new(Dimension::Requests);
        for number in 0..MAX_ZEROS {
            let at = f64::from(number);
            let stamp = mirror.on_sent(at, 1.0);
            let reading = QuotaReading {
                dimension: Dimension::Requests,
                limit: 100.0,
                remaining: 0.0,
                reset: Some(std::time::Duration::from_secs(1000)),
                coarse: false,
            };
            assert_eq!(mirror.state.is_some(), number > 0);
            mirror.observe(at + 0.5, at, stamp, &reading);
        }
        assert!(mirror.state.is_none());
        assert_eq!(mirror.next_at(200.0, 1.0), 200.0);
    }

    #[test]
    fn the_first_headers_that_tell_of_usage_make_a_copy() {
        let mut mirror = QuotaMirror::new(Dimension::Requests);
        let stamp = mirror.on_sent(0.0, 1.0);
        mirror.observe(0.0, 0.0, stamp, &reading(100.0, 5.0));
        assert!(mirror.state.is_none(), "nothing was used");
        assert_eq!(mirror.next_at(0.0, 1000.0), 0.0);
        // Three more went out before the answer was there, and two came.
        send(&mut mirror, 3, 0.5);
        mirror.observe(1.0, 0.0, stamp, &reading(90.0, 5.0));
        assert_copy(&mirror, 90.0 - 3.0 + 2.0, 2.0);
    }

    #[test]
    fn limits_so_tiny_that_nothing_is_ever_left_are_ignored() {
        for (limit, coarse, is_copied) in
            [(4.0, false, false), (5.0, false, true), (5.0, true, false), (6.0, true, true)]
        {
            let mut mirror = QuotaMirror::new(Dimension::Requests);
            let stamp = mirror.on_sent(0.0, 1.0);
            mirror.observe(0.0, 0.0, stamp, &QuotaReading { limit, coarse, ..reading(1.0, 2.0) });
            assert_eq!(mirror.state.is_some(), is_copied, "{limit} {coarse}");
        }
    }

    #[test]
    fn what_goes_out_is_charged_and_what_came_to_nothing_is_not() {
        let mut mirror = mirror(Dimension::Requests);
        assert_eq!(mirror.next_at(0.0, 1.0), 0.0);
        send(&mut mirror, 10, 0.0);
        assert_copy(&mirror, 0.0, 2.0);
        // One for itself, and one is held back for what is not known exactly.
        assert_eq!(mirror.next_at(0.0, 1.0), 1.0);
        mirror.refund(1.0);
        assert_eq!(mirror.next_at(0.0, 1.0), 0.5);
        assert_eq!(mirror.next_at(0.5, 1.0), 0.5);
    }

    #[test]
    fn a_response_corrects_it_and_another_one_that_tells_the_same_does_not_again() {
        let mut mirror = mirror(Dimension::Requests);
        let first = mirror.on_sent(0.0, 1.0);
        let second = mirror.on_sent(0.0, 1.0);
        // Nine were expected, and about four and a half were left.
        mirror.observe(1.0, 0.0, first, &reading(4.0, 48.0));
        assert_copy(&mirror, 8.0 + 2.0 - 0.4 * 4.5, 2.0);
        // Of the same error the part that was not corrected is left: 8 - 1.8 and not 8.
        mirror.observe(1.0, 0.0, second, &reading(3.0, 48.5));
        assert_copy(&mirror, 8.2 - 0.4 * (6.2 - 3.5), 2.0);
    }

    #[test]
    fn what_was_spent_and_what_is_left_tell_the_rate() {
        let mut mirror = mirror(Dimension::Requests);
        let stamps = [5.0; 10].map(|now| mirror.on_sent(now, 1.0));
        mirror.observe(5.0, 5.0, stamps[6], &reading(18.0, 41.0));
        assert_eq!(mirror.state.as_ref().unwrap().rate, 2.0, "seven requests are too few");
        // Ten were spent, and there are five more than before: fifteen in five seconds.
        mirror.observe(5.0, 5.0, stamps[9], &reading(15.0, 42.5));
        assert_eq!(mirror.state.as_ref().unwrap().rate, 2.0 + 0.3 * (3.0 - 2.0));
    }

    #[test]
    fn a_rejection_with_nothing_left_is_explained_and_more_is_held_back() {
        let mut unknown = QuotaMirror::new(Dimension::Requests);
        assert!(!unknown.explains(0.0, 0.0, MirrorStamp::default(), &reading(0.0, 50.0)));
        let mut mirror = mirror(Dimension::Requests);
        let stamp = mirror.on_sent(0.0, 1.0).unspent();
        mirror.refund(stamp.cost());
        assert!(!mirror.explains(0.0, 0.0, stamp, &reading(1.0, 49.5)), "one was left");
        assert!(mirror.explains(0.0, 0.0, stamp, &reading(0.0, 50.0)));
        assert_copy(&mirror, 0.0, 2.0);
        assert_eq!(mirror.next_at(0.0, 1.0), (1.0 + 1.5) / 2.0);
    }

    #[test]
    fn requests_that_cost_more_than_estimated_are_charged_more_from_then_on() {
        let mut mirror = mirror(Dimension::Tokens);
        let stamp = mirror.on_sent(0.0, 2.0);
        mirror.settle(stamp, 7.0);
        assert_copy(&mirror, 10.0 - 7.0, 2.0);
        let stamp = mirror.on_sent(0.0, 2.0);
        assert_eq!(stamp.cost(), 2.0 + 0.1 * 5.0);
        // Cheaper ones bring that back to the estimate, and no further.
        mirror.settle(stamp, 0.0);
        mirror.settle(stamp, 0.0);
        mirror.settle(stamp, 0.0);
        assert_eq!(mirror.on_sent(0.0, 2.0).cost(), 2.0);
    }

    #[test]
    fn in_a_window_nothing_comes_before_its_end() {
        let mut mirror = QuotaMirror::new(Dimension::Requests);
        let stamp = mirror.on_sent(0.0, 1.0);
        mirror.observe(0.0, 0.0, stamp, &reading(90.0, 60.0));
        let stamp = mirror.on_sent(10.0, 1.0);
        mirror.observe(10.0, 10.0, stamp, &reading(1.0, 50.0));
        assert_eq!(mirror.next_at(10.0, 1.0), 10.0, "nothing is held back");
        mirror.on_sent(10.0, 1.0);
        assert_eq!(mirror.next_at(10.0, 1.0), 60.01);
    }
}
