//! The hypothesis that headers tell the truth: a copy of the provider's bucket.
//!
//! Every send is charged to the copy. A response says what was left when its request was admitted;
//! the difference from what the copy held at that moment corrects it, so neither latency nor other
//! users of the same quota lead it astray.

use super::window::LENGTHS;
use crate::{Dimension, Reading};

/// How much of a difference is believed at once: a rounded number is off by half a unit.
const GAIN: f64 = 0.4;
/// How much of it is put down to a wrong rate.
const RATE_GAIN: f64 = 0.3;
/// A window has surely ended so long after its end.
const AFTER_END: f64 = 0.01;
/// A bucket of fewer requests is tiny: what is left in it is nearly always nothing.
const TINY: f64 = 5.0;
/// How much one response counts towards the share of surprises, and which share ends the trust.
const SURPRISE: f64 = 0.03;
const TOO_SURPRISING: f64 = 0.35;
/// Longer waits are cut short by a request that sees for itself.
const PATIENCE_S: f64 = 30.0;
/// Above this a count in round thousands is taken to be rounded.
const ROUNDED: f64 = 1000.0;

/// What the copy held when a request went out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamp {
    balance: f64,
    correction: f64,
    spent: f64,
    cost: f64,
    /// There was a copy already.
    is_valid: bool,
}

impl Stamp {
    /// The same for a request that was rejected, and so has not spent anything.
    pub(super) fn unspent(self) -> Stamp {
        Stamp { spent: self.spent - self.cost, ..self }
    }
}

#[derive(Debug)]
pub(super) struct Mirror {
    dimension: Dimension,
    /// The most there can be; none before a header has said so.
    state: Option<State>,
    /// Everything ever charged.
    spent: f64,
    /// The share of late responses that were rejections which the copy should have prevented.
    surprises: f64,
}

#[derive(Debug)]
struct State {
    limit: f64,
    rate: f64,
    balance: f64,
    at: f64,
    correction: f64,
    is_rounded: bool,
    /// What the provider says the rate is, where it can be trusted to know.
    told: Option<f64>,
    typical_cost: f64,
    /// When it was last empty, and what was spent until then.
    empty_at: Option<(f64, f64)>,
    /// Rejections that the headers explained.
    short: f64,
    window: Boundary,
}

/// Whether the limit is one of fixed windows: then `reset` names its end, whatever was used.
#[derive(Debug, Clone, Copy)]
enum Boundary {
    /// Time, end and usage of an early response in this window, or bucket.
    Unknown {
        end: f64,
        used: f64,
    },
    Bucket,
    /// The present window ends then; windows are so long, once that is known. Until then single
    /// requests find out whether the next has begun.
    Window {
        end: f64,
        length: f64,
        next_probe: f64,
    },
}

impl Mirror {
    pub(super) fn new(dimension: Dimension) -> Mirror {
        Mirror { dimension, state: None, spent: 0.0, surprises: 0.0 }
    }

    pub(super) fn dimension(&self) -> Dimension {
        self.dimension
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.state.is_some()
    }

    /// When there is enough for a request of that cost.
    pub(super) fn next_at(&mut self, now: f64, cost: f64) -> f64 {
        let Some(state) = &mut self.state else { return now };
        state.advance(now);
        let least = cost.min(state.limit) - 1e-6;
        let need = (cost + state.margin()).min(0.98 * state.limit).max(least);
        if state.balance >= need {
            return now;
        }
        match state.window {
            Boundary::Window { end, next_probe, .. } => {
                (end + AFTER_END).max(next_probe).max(now + 1e-3)
            }
            _ => {
                let wait = (need - state.balance) / state.rate;
                // The last of a day's quota is not held back: using it up is how to know.
                let wait =
                    if wait > PATIENCE_S { (least - state.balance) / state.rate } else { wait };
                if wait <= 0.0 { now } else { now + wait.clamp(1e-4, PATIENCE_S) }
            }
        }
    }

    pub(super) fn sent(&mut self, now: f64, cost: f64) -> Stamp {
        self.spent += cost;
        let Some(state) = &mut self.state else {
            return Stamp { spent: self.spent, cost, ..Stamp::default() };
        };
        state.advance(now);
        state.balance -= cost;
        state.typical_cost += 0.05 * (cost - state.typical_cost);
        Stamp {
            balance: state.balance,
            correction: state.correction,
            spent: self.spent,
            cost,
            is_valid: true,
        }
    }

    /// A request was answered.
    pub(super) fn answered(&mut self) {
        if self.surprises <= TOO_SURPRISING {
            self.surprises *= 1.0 - SURPRISE;
        }
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
    pub(super) fn observe(&mut self, now: f64, sent_at: f64, stamp: Stamp, reading: &Reading) {
        if self.surprises > TOO_SURPRISING {
            return;
        }
        let reset = reading.reset.map(|reset| {
            let reset = reset.as_secs_f64();
            // A date means the same whenever it is read; a duration counts from the sending.
            if reading.coarse { reset + now - sent_at } else { reset }
        });
        // Counts in thousands say too little about a bucket of a few thousands, and whole seconds
        // too little about one of a few requests.
        let too_small = if stamp.cost > 1.0 { 8.0 * ROUNDED } else { TINY };
        if reading.coarse && reading.limit < too_small {
            return;
        }
        let used = reading.limit - reading.remaining;
        let is_telling = reading.remaining > 0.0 && used > 1.0;
        let is_full = reading.remaining >= reading.limit - 1.0;
        let Some(state) = &mut self.state else {
            let Some(reset) = reset.filter(|reset| *reset > 0.0 && used > 0.0) else { return };
            // What is full, or nearly so, may be a header that never changes.
            if reading.coarse && is_full && !is_telling {
                return;
            }
            let rate = used / if reading.coarse { (reset - 0.5).max(0.25) } else { reset };
            let since = self.spent - stamp.spent;
            let mut state = State {
                limit: reading.limit,
                rate,
                balance: reading.remaining - since + rate * (now - sent_at),
                at: now,
                correction: 0.0,
                is_rounded: false,
                told: None,
                typical_cost: stamp.cost.max(1.0),
                empty_at: None,
                short: 0.0,
                window: Boundary::Unknown { end: sent_at + reset, used },
            };
            state.balance = state.balance.clamp(-0.2 * state.limit, state.limit);
            self.state = Some(state);
            return;
        };
        state.advance(now);
        state.limit = reading.limit;
        state.is_rounded =
            reading.limit >= ROUNDED && reading.remaining % ROUNDED == 0.0 && stamp.cost > 1.0;
        if let Some(reset) = reset {
            state.look_for_window(sent_at + reset, used, reading.coarse);
        }
        if let Boundary::Window { .. } = state.window {
            // The present window's count only; an older response is about an older window.
            if sent_at + reset.unwrap_or(0.0) > now {
                let since = self.spent - stamp.spent;
                state.balance = state.balance.min(reading.remaining - since);
            }
            return;
        }
        if !stamp.is_valid {
            return;
        }
        let expected = stamp.balance + state.correction - stamp.correction;
        let error = if state.is_rounded {
            // Any balance that is rounded to the same is as likely as another.
            let error = reading.remaining - expected;
            error - error.clamp(-0.5 * ROUNDED, 0.5 * ROUNDED)
        } else {
            // Counts are rounded down, and so half a unit short on average.
            let half = if reading.limit < TINY { 0.0 } else { 0.5_f64.min(stamp.cost / 2.0) };
            GAIN * (reading.remaining + half - expected)
        };
        state.balance = (state.balance + error).min(state.limit);
        state.correction += error;
        if let Some(told) = state.told {
            state.rate += 0.005 * (told - state.rate);
        }
        // The rest of a tiny bucket says nothing.
        if reading.limit >= TINY {
            state.adapt_rate(error / GAIN, now - sent_at);
        }
        // Nearly full, while we held back because it seemed half empty.
        if reading.remaining > 0.6 * reading.limit && expected < 0.5 * reading.limit {
            let tellers = (state.rate * (now - sent_at) / state.typical_cost).max(1.0);
            state.rate *= 1.0 + 0.6 / tellers;
        }
        if let Some(reset) = reset.filter(|reset| *reset > 0.0 && used >= 1.0 && !reading.coarse) {
            let told = used / reset;
            // Other users of the quota do not show in what is told, so only changes count.
            if let Some(before) = state.told {
                state.rate *= (told / before).clamp(0.1, 10.0);
            } else {
                state.rate = told;
            }
            state.told = Some(told);
        }
    }

    /// Whether a rejection is explained by what was left; then the copy knows better from now on.
    pub(super) fn explains(
        &mut self,
        now: f64,
        sent_at: f64,
        stamp: Stamp,
        reading: &Reading,
    ) -> bool {
        if self.state.is_some() {
            self.surprises += SURPRISE * (1.0 - self.surprises);
            if self.surprises > TOO_SURPRISING {
                // Whatever these headers mean, it is not this.
                self.state = None;
            }
        }
        let Some(state) = &mut self.state else { return false };
        let rounding = if state.is_rounded { 0.5 * ROUNDED } else { 0.0 };
        // What an answer costs is only estimated, and can be more than was left.
        let most = if self.dimension == Dimension::Requests { 1.0 } else { 3.0 * stamp.cost };
        if reading.remaining >= most + rounding {
            return false;
        }
        state.short += 1.0;
        // Empty twice: what was spent between is what was refilled.
        if let Some((at, spent)) = state.empty_at {
            let (elapsed, refilled) = (sent_at - at, stamp.spent - stamp.cost - spent);
            if elapsed > 0.2 && elapsed < 10.0 && refilled >= 0.0 {
                let measured = (refilled + stamp.cost) / elapsed;
                state.rate = state.rate.min(0.5 * (state.rate + measured));
            }
            if reading.limit < TINY {
                state.rate *= 0.97;
            }
        }
        state.empty_at = Some((sent_at, stamp.spent - stamp.cost));
        let since = self.spent - stamp.spent;
        let refilled = match state.window {
            Boundary::Window { .. } => 0.0,
            _ => state.rate * (now - sent_at),
        };
        let left = reading.remaining - since + refilled;
        state.balance = state.balance.min(left);
        true
    }
}

impl State {
    fn advance(&mut self, now: f64) {
        if let Boundary::Window { end, length, next_probe } = &mut self.window {
            while *end + AFTER_END <= now && *length > 0.0 {
                *end += *length;
                self.balance = self.limit;
            }
            if *end + AFTER_END <= now && *next_probe <= now {
                self.balance = self.balance.max(self.typical_cost);
                *next_probe = now + 0.25;
            }
        } else {
            self.balance = (self.balance + self.rate * (now - self.at)).min(self.limit);
        }
        self.at = now;
    }

    fn margin(&self) -> f64 {
        if let Boundary::Window { .. } = self.window {
            return 0.0;
        }
        let rounding = if self.is_rounded { 0.9 * ROUNDED } else { 0.0 };
        let costs = 1.0 + 0.5 * self.short;
        (costs * self.typical_cost).min(0.25 * self.limit) + rounding.min(0.25 * self.limit)
    }

    /// A copy that keeps being wrong has a wrong rate. What is learned now was spoiled one latency
    /// ago, so no faster than that.
    fn adapt_rate(&mut self, error: f64, latency: f64) {
        let latency = latency.max(0.5);
        // All that are in flight tell the same.
        let tellers = (self.rate * latency / self.typical_cost).max(1.0);
        let change = RATE_GAIN * error / latency / tellers;
        self.rate += change.clamp(-0.1 * self.rate, 0.1 * self.rate);
    }

    fn look_for_window(&mut self, end: f64, used: f64, is_coarse: bool) {
        let tolerance = if is_coarse { 1.05 } else { 0.05 };
        match &mut self.window {
            Boundary::Unknown { end: first_end, used: first_used } => {
                // A bucket's reset grows with what was used.
                let grown = (used - *first_used) / self.rate.max(1e-9);
                let is_telling = grown > if is_coarse { 4.0 } else { 2.0 } * tolerance;
                if used > 2.0 * *first_used && is_telling {
                    self.window = if (end - *first_end).abs() < tolerance {
                        Boundary::Window { end, length: 0.0, next_probe: end }
                    } else {
                        Boundary::Bucket
                    };
                } else if used < *first_used {
                    self.window = Boundary::Unknown { end, used };
                }
            }
            Boundary::Window { end: known, length, .. } => {
                if end > *known + tolerance {
                    let distance = end - *known;
                    let distance = LENGTHS
                        .into_iter()
                        .find(|length| (distance / length - 1.0).abs() < 0.02)
                        .unwrap_or(distance);
                    *length = if *length == 0.0 { distance } else { length.min(distance) };
                    *known = end;
                    self.balance = self.limit;
                } else if is_coarse {
                    *known = known.min(end);
                } else if (end - *known).abs() < tolerance {
                    *known = end;
                }
            }
            Boundary::Bucket => {}
        }
    }
}
