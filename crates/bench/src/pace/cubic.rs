//! Send-rate limiter with CUBIC as in the "adaptive" retry mode of the AWS SDKs, for comparison.

use bakeoff_pace::{Flight, Gate, Policy, PoolView, RetryMode, SendOutcome, TokenCost};
use std::collections::HashMap;
use std::time::Duration;

const BETA: f64 = 0.7;
const SCALE: f64 = 0.4;
/// Slot length of the measured rate, and weight of the newest slot in its smoothing.
const SLOT_S: f64 = 0.5;
const SMOOTH: f64 = 0.8;
const MIN_RATE: f64 = 0.5;

/// Limiter state. There is no limit before the first rejection. Each rejection multiplies the rate by 0.7; the rate
/// then grows along a cubic.
#[derive(Debug)]
pub(crate) struct Cubic {
    ceiling: u32,
    rate: Option<f64>,
    balance: f64,
    refilled_at: f64,
    measured: f64,
    slot: f64,
    sent_in_slot: f64,
    max_rate: f64,
    throttled_at: f64,
    sent_at: HashMap<Flight, f64>,
}

impl Cubic {
    pub(crate) fn new(ceiling: u32) -> Cubic {
        Cubic {
            ceiling,
            rate: None,
            balance: 0.0,
            refilled_at: 0.0,
            measured: 0.0,
            slot: 0.0,
            sent_in_slot: 0.0,
            max_rate: 0.0,
            throttled_at: 0.0,
            sent_at: HashMap::new(),
        }
    }

    fn refill(&mut self, now: f64) {
        if let Some(rate) = self.rate {
            let refill = (now - self.refilled_at) * rate;
            self.balance = (self.balance + refill).min(rate.max(1.0));
        }
        self.refilled_at = now;
    }

    fn measure(&mut self, now: f64) {
        self.sent_in_slot += 1.0;
        let slot = (now / SLOT_S).floor() * SLOT_S;
        if slot > self.slot {
            let rate = self.sent_in_slot / (slot - self.slot);
            self.measured = rate * SMOOTH + self.measured * (1.0 - SMOOTH);
            self.sent_in_slot = 0.0;
            self.slot = slot;
        }
    }
}

impl Policy for Cubic {
    fn gate(&mut self, view: PoolView, _cost: TokenCost) -> Gate {
        if view.in_flight >= self.ceiling {
            return Gate::Closed;
        }
        self.refill(view.now.as_secs_f64());
        match self.rate {
            Some(rate) if self.balance < 1.0 - 1e-9 => {
                Gate::Until(view.now + Duration::from_secs_f64((1.0 - self.balance) / rate))
            }
            _ => Gate::Open,
        }
    }

    fn on_sent(&mut self, view: PoolView, flight: Flight, _cost: TokenCost) {
        self.sent_at.insert(flight, view.now.as_secs_f64());
        if self.rate.is_some() {
            self.balance -= 1.0;
        }
    }

    fn on_ended(&mut self, view: PoolView, flight: Flight, _cost: TokenCost, ending: &SendOutcome) {
        let now = view.now.as_secs_f64();
        let sent_at = self.sent_at.remove(&flight).unwrap_or(now);
        match ending {
            SendOutcome::Answered { .. } => {
                self.measure(now);
                if let Some(rate) = &mut self.rate {
                    let flat = (self.max_rate * (1.0 - BETA) / SCALE).cbrt();
                    let elapsed = now - self.throttled_at;
                    let grown = SCALE * (elapsed - flat).powi(3) + self.max_rate;
                    *rate = grown.min(2.0 * self.measured).max(MIN_RATE);
                }
            }
            // One reduction per burst: this request was sent before the first rejection arrived.
            SendOutcome::Rejected { .. } if self.rate.is_some() && sent_at < self.throttled_at => {
                self.measure(now);
            }
            SendOutcome::Rejected { .. } => {
                self.measure(now);
                self.refill(now);
                let rate = self.rate.map_or(self.measured, |rate| rate.min(self.measured));
                self.max_rate = rate;
                self.throttled_at = now;
                let rate = (rate * BETA).min(2.0 * self.measured).max(MIN_RATE);
                self.rate = Some(rate);
                self.balance = self.balance.min(rate.max(1.0));
            }
            _ => {}
        }
    }

    /// Returns `Queue`, because the limiter decides the send time and an additional pause would only add delay.
    fn retry_mode(&self, _now: Duration) -> RetryMode {
        RetryMode::Queue
    }

    fn limit(&self) -> u32 {
        self.ceiling
    }

    fn set_max_connections(&mut self, max: u32) {
        self.ceiling = max;
    }
}
