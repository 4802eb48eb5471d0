//! What was sent in the last 60 seconds.

use crate::{Cost, Dimension, Flight, Gate};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

const LENGTH: Duration = Duration::from_secs(60);

/// A sliding window. A request is in it from when it is sent until it is 60 seconds old, whether it
/// has ended or not.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    /// The oldest first.
    sends: VecDeque<Send>,
    /// How many have left, which is the number of the first one.
    left: u64,
    numbers: HashMap<Flight, u64>,
    used: Cost,
}

#[derive(Debug, Clone, Copy)]
struct Send {
    at: Duration,
    flight: Flight,
    cost: Cost,
}

impl Window {
    /// Forgets what is too old.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some(send) = self.sends.front().copied() {
            if send.at + LENGTH > now {
                return;
            }
            self.sends.pop_front();
            self.left += 1;
            self.numbers.remove(&send.flight);
            self.take(send.cost);
        }
    }

    pub(super) fn push(&mut self, at: Duration, flight: Flight, cost: Cost) {
        self.numbers.insert(flight, self.left + self.sends.len() as u64);
        self.sends.push_back(Send { at, flight, cost });
        self.used += cost;
    }

    /// A request that is still in the window has cost this and not the estimate.
    pub(super) fn settle(&mut self, flight: Flight, actual: Cost) {
        let Some(number) = self.numbers.get(&flight) else { return };
        let index = (number - self.left) as usize;
        let Some(send) = self.sends.get_mut(index) else { return };
        let estimate = std::mem::replace(&mut send.cost, actual);
        self.take(estimate);
        self.used += actual;
    }

    pub(super) fn used(&self) -> Cost {
        self.used
    }

    /// Whether a request of that cost has room under a limit, or when it will have. What is too old
    /// must have been forgotten before.
    pub(super) fn gate(&self, dimension: Dimension, limit: u64, cost: Cost) -> Gate {
        let needed = amount(dimension, cost);
        if needed > limit {
            // It never fits, so it goes alone.
            return self.sends.back().map_or(Gate::Open, |last| Gate::Until(last.at + LENGTH));
        }
        let used = match dimension {
            Dimension::Requests => self.sends.len() as u64,
            _ => amount(dimension, self.used),
        };
        let mut too_much = used.saturating_add(needed).saturating_sub(limit);
        if too_much == 0 {
            return Gate::Open;
        }
        for send in &self.sends {
            too_much = too_much.saturating_sub(amount(dimension, send.cost));
            if too_much == 0 {
                return Gate::Until(send.at + LENGTH);
            }
        }
        // What is used is the sum of what was sent, so this is not reached.
        Gate::Open
    }

    fn take(&mut self, cost: Cost) {
        self.used.input = self.used.input.saturating_sub(cost.input);
        self.used.output = self.used.output.saturating_sub(cost.output);
    }
}

fn amount(dimension: Dimension, cost: Cost) -> u64 {
    match dimension {
        Dimension::Requests => 1,
        Dimension::Tokens => cost.total(),
        Dimension::InputTokens => cost.input,
        Dimension::OutputTokens => cost.output,
    }
}
