//! The hypothesis that headers tell the truth: a copy of the provider's bucket.
//!
//! Every send is charged to the copy. A response says what was left when its request was admitted;
//! the difference from what the copy held at that moment corrects it, so neither latency nor other
//! users of the same quota lead it astray.

use crate::{Dimension, Reading};

/// How much of a difference is believed at once: a rounded number is off by half a unit.
const GAIN: f64 = 0.4;
/// The rate is measured over at least so many seconds and costs.
const SLOPE_S: f64 = 2.0;
const SLOPE_COSTS: f64 = 12.0;
/// Above this a count in round thousands is taken to be rounded.
const ROUNDED: f64 = 1000.0;

/// What the copy held when a request went out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamp {
    balance: f64,
    correction: f64,
    spent: f64,
    cost: f64,
}

#[derive(Debug)]
pub(super) struct Mirror {
    dimension: Dimension,
    /// The most there can be; none before a header has said so.
    state: Option<State>,
    /// Everything ever charged.
    spent: f64,
}

#[derive(Debug)]
struct State {
    limit: f64,
    rate: f64,
    balance: f64,
    at: f64,
    correction: f64,
    is_rounded: bool,
    /// Where the slope is measured from: time, remaining, spent.
    anchor: Option<(f64, f64, f64)>,
    typical_cost: f64,
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
    /// The present window ends then; windows are so long, once that is known.
    Window {
        end: f64,
        length: f64,
    },
}

impl Mirror {
    pub(super) fn new(dimension: Dimension) -> Mirror {
        Mirror { dimension, state: None, spent: 0.0 }
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
        let need = (cost + state.margin()).min(0.98 * state.limit).max(cost.min(state.limit));
        if state.balance >= need {
            return now;
        }
        match state.window {
            Boundary::Window { end, .. } => end.max(now + 1e-3),
            _ => now + ((need - state.balance) / state.rate).max(1e-4),
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
        Stamp { balance: state.balance, correction: state.correction, spent: self.spent, cost }
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
        let reset = reading.reset.map(|reset| {
            let reset = reset.as_secs_f64();
            // A date means the same whenever it is read; a duration counts from the sending.
            if reading.coarse { reset + now - sent_at } else { reset }
        });
        let used = reading.limit - reading.remaining;
        let is_telling = reading.remaining > 0.0 && used > 1.0;
        let is_full = reading.remaining >= reading.limit - 1.0;
        let Some(state) = &mut self.state else {
            let Some(reset) = reset.filter(|reset| *reset > 0.0 && used > 0.0) else { return };
            if !is_telling && is_full {
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
                anchor: None,
                typical_cost: stamp.cost.max(1.0),
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
        let expected = stamp.balance + state.correction - stamp.correction;
        let error = reading.remaining + 0.5_f64.min(stamp.cost / 2.0) - expected;
        let is_noise = state.is_rounded && error.abs() < 0.45 * ROUNDED;
        // A stamp from before there was a copy says nothing.
        if !is_noise && stamp.balance != 0.0 {
            state.balance = (state.balance + GAIN * error).min(state.limit);
            state.correction += GAIN * error;
        }
        state.measure(sent_at, reading.remaining, stamp, is_full);
        if !reading.coarse
            && let Some(reset) = reset
            && used > 1.0
            && reset > 0.0
        {
            let told = used / reset;
            // Told at once when the limit changes; other users show only in the slope.
            if state.rate > 1.3 * told || (state.rate < 0.3 * told) {
                state.rate = told;
                state.anchor = None;
            }
        }
    }

    /// Whether a rejection is explained by what was left; then the copy knows better from now on.
    pub(super) fn explains(&mut self, stamp: Stamp, reading: &Reading) -> bool {
        if reading.remaining >= stamp.cost.max(1.0) {
            return false;
        }
        if let Some(state) = &mut self.state {
            state.short += 1.0;
        }
        true
    }
}

impl State {
    fn advance(&mut self, now: f64) {
        if let Boundary::Window { end, length } = &mut self.window {
            while *end <= now && *length > 0.0 {
                *end += *length;
                self.balance = self.limit;
            }
            if *end <= now {
                self.balance = self.balance.max(1.0);
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
        let rounding = if self.is_rounded { 0.5 * ROUNDED } else { 0.0 };
        let costs = 1.0 + 0.5 * self.short;
        (costs * self.typical_cost).min(0.25 * self.limit) + rounding.min(0.25 * self.limit)
    }

    /// The rate from two responses: what came back plus what was spent, over the time between.
    fn measure(&mut self, sent_at: f64, remaining: f64, stamp: Stamp, is_full: bool) {
        if is_full {
            self.anchor = None;
            return;
        }
        let Some((at, before, spent)) = self.anchor else {
            self.anchor = Some((sent_at, remaining, stamp.spent));
            return;
        };
        let (elapsed, used) = (sent_at - at, stamp.spent - spent);
        if elapsed < SLOPE_S || used < SLOPE_COSTS * self.typical_cost {
            return;
        }
        let rate = (remaining - before + used) / elapsed;
        if rate > 0.0 {
            self.rate += 0.25 * (rate - self.rate);
        }
        if elapsed > 15.0 {
            self.anchor = Some((sent_at, remaining, stamp.spent));
        }
    }

    fn look_for_window(&mut self, end: f64, used: f64, is_coarse: bool) {
        let tolerance = if is_coarse { 1.05 } else { 0.05 };
        match &mut self.window {
            Boundary::Unknown { end: first_end, used: first_used } => {
                // A bucket's reset grows with what was used.
                let grown = (used - *first_used) / self.rate.max(1e-9);
                if used > 2.0 * *first_used && grown > 2.0 * tolerance {
                    self.window = if (end - *first_end).abs() < tolerance {
                        Boundary::Window { end, length: 0.0 }
                    } else {
                        Boundary::Bucket
                    };
                } else if used < *first_used {
                    self.window = Boundary::Unknown { end, used };
                }
            }
            Boundary::Window { end: known, length } => {
                if end > *known + tolerance {
                    let distance = end - *known;
                    *length = if *length == 0.0 { distance } else { length.min(distance) };
                    *known = end;
                    self.balance = self.limit;
                } else if is_coarse {
                    *known = known.min(end);
                }
            }
            Boundary::Bucket => {}
        }
    }
}
