//! A copy of the provider's bucket, driven by rate-limit headers.
//!
//! Every request is charged to the copy. A response gives the remainder at the time its request was
//! admitted; the difference from the copy's balance at that time corrects the copy. So neither latency
//! nor other users of the same quota distort it.

use super::boundary::{Boundary, ResetReading};
use super::charge::{ExcessCharge, RemainderReading};
use crate::{Dimension, QuotaReading};

/// Share of a difference that is applied at once: a rounded number is off by half a unit.
const GAIN: f64 = 0.4;
/// Weight of a new rate measurement, and the seconds and requests that it needs.
const RATE_GAIN: f64 = 0.3;
const SLOPE_S: f64 = 1.0;
const SLOPE_REQUESTS: f64 = 8.0;
/// Weight of one request in the mean excess cost.
const SURPLUS_GAIN: f64 = 0.1;
/// Smallest usable limit with exact resets, and with resets in whole seconds. The remainder of a
/// smaller limit is nearly always 0.
const MIN_LIMIT: (f64, f64) = (5.0, 6.0);
/// Increase of the remainder within a window that contradicts it, as a share of the limit, and the
/// seconds between the responses. Refunds of overestimated requests cause smaller ones.
const REFILL_SHARE: f64 = 0.25;
const MIN_REFILL_S: f64 = 0.25;
/// Longer waits are ended by a request that tests the limit.
const MAX_WAIT_S: f64 = 30.0;
/// Number of consecutive answers with a remainder of 0 after which the headers are ignored.
const MAX_ZEROS: u32 = 100;
/// Number of rejections in a row, each sent after the previous one, above which each one halves the pace, and the
/// factor on the rate from then on.
const MAX_DRY: u32 = 3;
const DRY_RATE_FACTOR: f64 = 0.8;
const MAX_HALVINGS: u32 = 10;
/// Shortfall that counts as a rounding error.
const TOLERANCE: f64 = 1e-6;

/// The state of the copy when a request was sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MirrorStamp {
    balance: f64,
    correction: f64,
    spent: f64,
    /// The estimated cost, and the amount charged.
    estimate: f64,
    cost: f64,
    /// Number of the request.
    number: f64,
    /// Whether the copy existed.
    is_valid: bool,
}

impl MirrorStamp {
    /// Returns the amount charged for the request.
    pub(super) fn cost(self) -> f64 {
        self.cost
    }

    /// Returns the stamp of a rejected request, which spent nothing.
    pub(super) fn unspent(self) -> MirrorStamp {
        MirrorStamp { spent: self.spent - self.cost, ..self }
    }
}

/// The copy of one dimension of the quota.
#[derive(Debug)]
pub(super) struct QuotaMirror {
    dimension: Dimension,
    /// The copy; `None` before the first usable headers.
    state: Option<MirrorState>,
    /// Sum of all charges.
    spent: f64,
    /// Recent mean excess of the actual cost over the estimate.
    surplus: f64,
    /// Charges of the provider beyond the usage, part of the actual cost.
    excess: ExcessCharge,
    /// Number of requests sent.
    number: f64,
    /// Consecutive answers with a remainder of 0.
    zeros: u32,
    /// Whether the headers describe a sliding window, which only experiments can measure.
    is_ignored: bool,
}

#[derive(Debug)]
struct MirrorState {
    /// The limit according to the headers.
    limit: f64,
    rate: f64,
    balance: f64,
    at: f64,
    sent_at: f64,
    /// Sum of all corrections.
    correction: f64,
    typical_cost: f64,
    /// Number of rejections explained by the headers.
    explained: f64,
    /// The rejections since the last answer, each sent after the previous one, and the time of the latest.
    dry: (u32, f64),
    /// An earlier response, from which the rate is measured.
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
        QuotaMirror {
            dimension,
            state: None,
            spent: 0.0,
            surplus: 0.0,
            excess: ExcessCharge::default(),
            number: 0.0,
            zeros: 0,
            is_ignored: false,
        }
    }

    pub(super) fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// Returns the refill per second; 0 if the headers say nothing.
    pub(super) fn rate(&self) -> f64 {
        self.state.as_ref().map_or(0.0, |state| state.rate)
    }

    /// Returns when the balance is sufficient for a request with that estimate.
    pub(super) fn next_at(&mut self, now: f64, estimate: f64) -> f64 {
        let cost = estimate + self.surplus;
        let Some(state) = &mut self.state else { return now };
        state.advance(now);
        let min = cost.min(state.limit) - TOLERANCE;
        let need = (cost + state.margin()).min(0.98 * state.limit).max(min);
        if state.balance >= need {
            return now;
        }
        let wait = (need - state.balance) / state.pace();
        let latest = now.max(state.sent_at + MAX_WAIT_S);
        state.boundary.next_at(now).unwrap_or((now + wait.max(1e-4)).min(latest))
    }

    pub(super) fn on_sent(&mut self, now: f64, estimate: f64) -> MirrorStamp {
        let cost = estimate + self.surplus;
        self.spent += cost;
        self.number += 1.0;
        let (spent, number) = (self.spent, self.number);
        let Some(state) = &mut self.state else {
            return MirrorStamp { spent, estimate, cost, number, ..MirrorStamp::default() };
        };
        state.advance(now);
        state.boundary.on_sent(now);
        state.balance -= cost;
        state.sent_at = now;
        state.typical_cost += 0.05 * (cost - state.typical_cost);
        let (balance, correction) = (state.balance, state.correction);
        MirrorStamp { balance, correction, spent, estimate, cost, number, is_valid: true }
    }

    /// Replaces the estimate of a request by its usage.
    pub(super) fn settle(&mut self, stamp: MirrorStamp, usage: f64) {
        self.excess.on_usage(usage);
        let usage = usage + self.excess.per_request();
        self.surplus += SURPLUS_GAIN * (usage - stamp.estimate - self.surplus);
        self.surplus = self.surplus.max(0.0);
        self.refund(stamp.cost - usage);
    }

    /// Refunds an amount that was overcharged.
    pub(super) fn refund(&mut self, amount: f64) {
        self.spent -= amount;
        if let Some(state) = &mut self.state {
            state.balance = (state.balance + amount).min(state.limit);
            state.correction += amount;
        }
    }

    /// Processes the headers of a response to a request sent at `sent_at`.
    pub(super) fn observe(
        &mut self,
        now: f64,
        sent_at: f64,
        stamp: MirrorStamp,
        reading: &QuotaReading,
    ) {
        self.zeros = if reading.remaining < 1.0 { self.zeros.saturating_add(1) } else { 0 };
        if self.zeros >= MAX_ZEROS {
            // The headers have another meaning.
            self.state = None;
        }
        if self.is_ignored
            || self.zeros >= MAX_ZEROS
            || reading.limit < if reading.coarse { MIN_LIMIT.1 } else { MIN_LIMIT.0 }
        {
            return;
        }
        let since = self.spent - stamp.spent;
        let used = reading.limit - reading.remaining;
        // A date is absolute; a duration counts from the time of sending.
        let late = if reading.coarse { now - sent_at } else { 0.0 };
        let reset = reading.reset.map(|reset| reset.as_secs_f64() + late);
        let anchor = Anchor { at: sent_at, remaining: reading.remaining, spent: stamp.spent };
        let Some(state) = &mut self.state else {
            // Without usage the reset says nothing about the refill.
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
                dry: (0, sent_at),
                anchor,
                boundary: Boundary::Unknown(ResetReading { sent_at, end: sent_at + reset, used }),
            });
            return;
        };
        state.advance(now);
        state.limit = reading.limit;
        if self.dimension != Dimension::Requests {
            let (number, remaining) = (stamp.number, reading.remaining);
            self.excess.on_reading(RemainderReading { sent_at, number, remaining }, state.rate);
        }
        if let Some(reset) = reset {
            let reset = ResetReading { sent_at, end: sent_at + reset, used };
            let is_new = state.boundary.observe(reset, state.rate, reading.coarse);
            if is_new {
                state.balance = state.limit;
                state.anchor = anchor;
            }
        }
        if let Boundary::Sliding = state.boundary {
            self.is_ignored = true;
            self.state = None;
            return;
        }
        if state.refilled_in_window(anchor) {
            state.boundary = Boundary::Bucket;
        }
        if let Boundary::Window { .. } = state.boundary {
            // Applies to the current window only; an older response is about an older window.
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

    /// Returns whether the remainder explains a rejection. If so, the balance is corrected.
    pub(super) fn explains(
        &mut self,
        now: f64,
        sent_at: f64,
        stamp: MirrorStamp,
        reading: &QuotaReading,
    ) -> bool {
        let Some(state) = &mut self.state else { return false };
        self.zeros = 0;
        // The cost of an answer is an estimate; the actual cost can exceed the remainder.
        let threshold = if self.dimension == Dimension::Requests { 1.0 } else { 3.0 * stamp.cost };
        if reading.remaining >= threshold {
            return false;
        }
        state.explained += 1.0;
        let refilled = match state.boundary {
            Boundary::Window { .. } => 0.0,
            _ => state.rate * (now - sent_at),
        };
        let left = reading.remaining - (self.spent - stamp.spent) + refilled;
        state.balance = state.balance.min(left);
        state.slow_down(now, sent_at);
        true
    }

    pub(super) fn on_answered(&mut self) {
        if let Some(state) = &mut self.state {
            state.dry.0 = 0;
        }
    }
}

impl MirrorState {
    fn advance(&mut self, now: f64) {
        if let Boundary::Window { .. } = self.boundary {
            if self.boundary.advance(now) {
                self.balance = self.limit;
            }
        } else {
            self.balance = (self.balance + self.pace() * (now - self.at)).min(self.limit);
        }
        self.at = now;
    }

    /// Returns whether the remainder has grown within a window, which only a bucket allows. The
    /// response after the largest usage is the reference.
    fn refilled_in_window(&mut self, new: Anchor) -> bool {
        if !matches!(self.boundary, Boundary::Window { .. }) {
            return false;
        }
        let old = self.anchor;
        let seconds = new.at - old.at;
        let refill = new.remaining + new.spent - old.remaining - old.spent;
        if refill < 0.0 || !self.boundary.contains(old.at) {
            self.anchor = new;
            return false;
        }
        let has_refilled = seconds >= MIN_REFILL_S
            && refill > (REFILL_SHARE * self.limit).max(SLOPE_REQUESTS * self.typical_cost);
        if has_refilled {
            self.rate = self.rate.max(refill / seconds);
        }
        has_refilled
    }

    /// Slows down during a series of rejections. If the provider charges rejected requests, a rate that is too
    /// high keeps the bucket empty, and no answer would ever correct it.
    fn slow_down(&mut self, now: f64, sent_at: f64) {
        let (count, rejected_at) = &mut self.dry;
        if sent_at >= *rejected_at {
            (*count, *rejected_at) = (count.saturating_add(1), now);
            if *count == MAX_DRY + 1 {
                self.rate *= DRY_RATE_FACTOR;
            }
        }
    }

    /// Returns the assumed refill per second, which is lower during a series of rejections.
    fn pace(&self) -> f64 {
        let halvings = self.dry.0.saturating_sub(MAX_DRY).min(MAX_HALVINGS);
        self.rate / f64::from(1 << halvings)
    }

    /// Returns the reserve for inaccuracies.
    fn margin(&self) -> f64 {
        if let Boundary::Window { .. } = self.boundary {
            return 0.0;
        }
        ((1.0 + 0.5 * self.explained) * self.typical_cost).min(0.25 * self.limit)
    }

    /// Measures the rate: spending and remainder give the refill since the anchor.
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

    /// Corrects the balance by the remainder at the time of admission.
    fn correct(&mut self, stamp: MirrorStamp, reading: &QuotaReading) {
        let expected = stamp.balance + self.correction - stamp.correction;
        // Counts are rounded down, which makes them half a unit too small on average.
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

    /// Returns a reading with that remainder of a limit of 100 and that reset in seconds.
    fn reading(remaining: f64, reset: f64) -> QuotaReading {
        QuotaReading {
            dimension: Dimension::Requests,
            limit: 100.0,
            remaining,
            reset: Some(Duration::from_secs_f64(reset)),
            coarse: false,
        }
    }

    /// Returns a copy with ten of a hundred left at 0 and a refill of two per second.
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
    fn constant_remainder_of_zero_is_ignored() {
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
    fn first_headers_with_usage_create_the_copy() {
        let mut mirror = QuotaMirror::new(Dimension::Requests);
        let stamp = mirror.on_sent(0.0, 1.0);
        mirror.observe(0.0, 0.0, stamp, &reading(100.0, 5.0));
        assert!(mirror.state.is_none(), "nothing was used");
        assert_eq!(mirror.next_at(0.0, 1000.0), 0.0);
        // Three more were sent before the answer arrived, and two were refilled.
        send(&mut mirror, 3, 0.5);
        mirror.observe(1.0, 0.0, stamp, &reading(90.0, 5.0));
        assert_copy(&mirror, 90.0 - 3.0 + 2.0, 2.0);
    }

    #[test]
    fn very_small_limits_are_ignored() {
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
    fn sent_requests_are_charged_and_refunds_restore_the_balance() {
        let mut mirror = mirror(Dimension::Requests);
        assert_eq!(mirror.next_at(0.0, 1.0), 0.0);
        send(&mut mirror, 10, 0.0);
        assert_copy(&mirror, 0.0, 2.0);
        // One for the request itself, and one as reserve.
        assert_eq!(mirror.next_at(0.0, 1.0), 1.0);
        mirror.refund(1.0);
        assert_eq!(mirror.next_at(0.0, 1.0), 0.5);
        assert_eq!(mirror.next_at(0.5, 1.0), 0.5);
    }

    #[test]
    fn same_error_is_corrected_once() {
        let mut mirror = mirror(Dimension::Requests);
        let first = mirror.on_sent(0.0, 1.0);
        let second = mirror.on_sent(0.0, 1.0);
        // Nine were expected; about four and a half were left.
        mirror.observe(1.0, 0.0, first, &reading(4.0, 48.0));
        assert_copy(&mirror, 8.0 + 2.0 - 0.4 * 4.5, 2.0);
        // Only the uncorrected part of the same error remains: 8 - 1.8 instead of 8.
        mirror.observe(1.0, 0.0, second, &reading(3.0, 48.5));
        assert_copy(&mirror, 8.2 - 0.4 * (6.2 - 3.5), 2.0);
    }

    #[test]
    fn spending_and_remainder_give_the_rate() {
        let mut mirror = mirror(Dimension::Requests);
        let stamps = [5.0; 10].map(|now| mirror.on_sent(now, 1.0));
        mirror.observe(5.0, 5.0, stamps[6], &reading(18.0, 41.0));
        assert_eq!(mirror.state.as_ref().unwrap().rate, 2.0, "seven requests are too few");
        // Ten were spent, and the remainder grew by five: fifteen in five seconds.
        mirror.observe(5.0, 5.0, stamps[9], &reading(15.0, 42.5));
        assert_eq!(mirror.state.as_ref().unwrap().rate, 2.0 + 0.3 * (3.0 - 2.0));
    }

    #[test]
    fn rejection_without_remainder_is_explained_and_raises_the_reserve() {
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
    fn excess_cost_raises_later_charges() {
        let mut mirror = mirror(Dimension::Tokens);
        let stamp = mirror.on_sent(0.0, 2.0);
        mirror.settle(stamp, 7.0);
        assert_copy(&mirror, 10.0 - 7.0, 2.0);
        let stamp = mirror.on_sent(0.0, 2.0);
        assert_eq!(stamp.cost(), 2.0 + 0.1 * 5.0);
        // Cheaper requests lower the charge to the estimate and no further.
        mirror.settle(stamp, 0.0);
        mirror.settle(stamp, 0.0);
        mirror.settle(stamp, 0.0);
        assert_eq!(mirror.on_sent(0.0, 2.0).cost(), 2.0);
    }

    #[test]
    fn window_refills_only_at_its_end() {
        let mut mirror = QuotaMirror::new(Dimension::Requests);
        let stamp = mirror.on_sent(0.0, 1.0);
        mirror.observe(0.0, 0.0, stamp, &reading(90.0, 60.0));
        let stamp = mirror.on_sent(10.0, 1.0);
        mirror.observe(10.0, 10.0, stamp, &reading(1.0, 50.0));
        assert_eq!(mirror.next_at(10.0, 1.0), 10.0, "no reserve in a window");
        mirror.on_sent(10.0, 1.0);
        assert_eq!(mirror.next_at(10.0, 1.0), 60.01);
    }

    /// Returns a copy that has seen an unchanged end at 60.
    fn in_window() -> QuotaMirror {
        let mut mirror = QuotaMirror::new(Dimension::Tokens);
        let stamp = mirror.on_sent(0.0, 1.0);
        mirror.observe(0.0, 0.0, stamp, &reading(90.0, 60.0));
        let stamp = mirror.on_sent(10.0, 1.0);
        mirror.observe(10.0, 10.0, stamp, &reading(20.0, 50.0));
        assert!(matches!(mirror.state.as_ref().unwrap().boundary, Boundary::Window { .. }));
        mirror
    }

    #[test]
    fn any_request_tests_for_the_next_window() {
        let mut mirror = in_window();
        send(&mut mirror, 19, 20.0);
        let large = 50.0;
        assert_eq!(mirror.next_at(20.0, large), 60.01);
        assert_eq!(mirror.next_at(60.01, large), 60.01);
        assert_eq!(mirror.next_at(60.5, large), 60.5, "larger than the usual request");
        mirror.on_sent(60.5, large);
        assert_eq!(mirror.next_at(60.5, large), 60.75);
    }

    #[test]
    fn remainder_that_grows_within_a_window_refutes_it() {
        for (remaining, is_window) in [(20.0, true), (40.0, true), (70.0, false)] {
            let mut mirror = in_window();
            let stamp = mirror.on_sent(11.0, 1.0);
            mirror.observe(11.0, 11.0, stamp, &reading(19.0, 49.0));
            let stamp = mirror.on_sent(30.0, 1.0);
            mirror.observe(30.0, 30.0, stamp, &reading(remaining, 30.0));
            let state = mirror.state.as_ref().unwrap();
            let found = matches!(state.boundary, Boundary::Window { .. });
            assert_eq!(found, is_window, "{remaining}: {state:?}");
        }
    }

    #[test]
    fn rejections_in_a_row_slow_down_until_an_answer() {
        let mut mirror = mirror(Dimension::Requests);
        // Rejects a request; returns the rate and the pace.
        let mut reject = |now: f64, sent_at: f64| {
            let stamp = mirror.on_sent(sent_at, 1.0).unspent();
            mirror.refund(stamp.cost());
            mirror.explains(now, sent_at, stamp, &reading(0.0, 50.0));
            let state = mirror.state.as_ref().unwrap();
            (state.rate, state.pace())
        };
        assert_eq!([1.0, 2.0, 3.0].map(|now| reject(now, now - 0.5)), [(2.0, 2.0); 3]);
        assert_eq!(reject(3.1, 2.9), (2.0, 2.0), "sent before the last rejection");
        assert_eq!([4.0, 5.0].map(|now| reject(now, now - 0.5)), [(1.6, 0.8), (1.6, 0.4)]);
        mirror.on_answered();
        assert_eq!(mirror.state.unwrap().pace(), 1.6);
    }
}
