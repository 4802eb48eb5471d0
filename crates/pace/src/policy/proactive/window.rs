//! What was sent in the last 60 seconds.

use crate::{Dimension, Flight, Gate, TokenCost};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(60);

/// A sliding window. A request is in it from when it is sent until it is 60 seconds old, whether it
/// has ended or not.
#[derive(Debug, Clone, Default)]
pub(super) struct SlidingWindow {
    /// The oldest first.
    sends: VecDeque<WindowEntry>,
    /// How many have left, which is the number of the first one.
    left: u64,
    numbers: HashMap<Flight, u64>,
    /// Those of them that did not go out after all.
    withdrawn: u64,
    used: TokenCost,
}

#[derive(Debug, Clone, Copy)]
struct WindowEntry {
    at: Duration,
    flight: Flight,
    cost: TokenCost,
    is_withdrawn: bool,
}

impl WindowEntry {
    fn amount(&self, dimension: Dimension) -> u64 {
        if self.is_withdrawn { 0 } else { amount(dimension, self.cost) }
    }
}

impl SlidingWindow {
    /// Forgets what is too old.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some(send) = self.sends.front().copied() {
            if send.at + WINDOW > now {
                return;
            }
            self.sends.pop_front();
            self.left += 1;
            self.numbers.remove(&send.flight);
            self.take(send.cost);
            self.withdrawn -= u64::from(send.is_withdrawn);
        }
    }

    pub(super) fn push(&mut self, at: Duration, flight: Flight, cost: TokenCost) {
        self.numbers.insert(flight, self.left + self.sends.len() as u64);
        self.sends.push_back(WindowEntry { at, flight, cost, is_withdrawn: false });
        self.used += cost;
    }

    /// A request did not go out: its place stays, and counts for nothing.
    pub(super) fn withdraw(&mut self, flight: Flight) {
        self.settle(flight, TokenCost::default());
        if let Some(send) = self.find(flight) {
            send.is_withdrawn = true;
            self.withdrawn += 1;
            self.numbers.remove(&flight);
        }
    }

    fn find(&mut self, flight: Flight) -> Option<&mut WindowEntry> {
        let index = self.numbers.get(&flight)? - self.left;
        self.sends.get_mut(index as usize)
    }

    /// A request that is still in the window has cost this and not the estimate.
    pub(super) fn settle(&mut self, flight: Flight, actual: TokenCost) {
        let Some(send) = self.find(flight) else { return };
        let estimate = std::mem::replace(&mut send.cost, actual);
        self.take(estimate);
        self.used += actual;
    }

    pub(super) fn used(&self) -> TokenCost {
        self.used
    }

    /// Whether a request of that cost has room under a limit, or when it will have. What is too old
    /// must have been forgotten before.
    pub(super) fn gate(&self, dimension: Dimension, limit: u64, cost: TokenCost) -> Gate {
        let needed = amount(dimension, cost);
        if needed > limit {
            // It never fits, so it goes alone.
            let last = self.sends.iter().rev().find(|send| !send.is_withdrawn);
            return last.map_or(Gate::Open, |last| Gate::Until(last.at + WINDOW));
        }
        let used = match dimension {
            Dimension::Requests => self.sends.len() as u64 - self.withdrawn,
            _ => amount(dimension, self.used),
        };
        let mut too_much = used.saturating_add(needed).saturating_sub(limit);
        if too_much == 0 {
            return Gate::Open;
        }
        for send in &self.sends {
            too_much = too_much.saturating_sub(send.amount(dimension));
            if too_much == 0 {
                return Gate::Until(send.at + WINDOW);
            }
        }
        // What is used is the sum of what was sent, so this is not reached.
        Gate::Open
    }

    /// When the last `burst` requests are so long ago that another may follow them.
    pub(super) fn spaced(&self, burst: u32, length: Duration) -> Gate {
        let mut sends = self.sends.iter().rev().filter(|send| !send.is_withdrawn);
        let first = sends.nth(burst.saturating_sub(1) as usize);
        first.map_or(Gate::Open, |first| Gate::Until(first.at + length))
    }

    fn take(&mut self, cost: TokenCost) {
        self.used.input = self.used.input.saturating_sub(cost.input);
        self.used.output = self.used.output.saturating_sub(cost.output);
    }
}

fn amount(dimension: Dimension, cost: TokenCost) -> u64 {
    match dimension {
        Dimension::Requests => 1,
        Dimension::Tokens => cost.total(),
        Dimension::InputTokens => cost.input,
        Dimension::OutputTokens => cost.output,
    }
}
