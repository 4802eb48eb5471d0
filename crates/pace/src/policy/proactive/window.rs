//! The requests of the last 60 seconds, as the provider sees them.
//!
//! A request counts at the provider from its arrival, which is after it was sent and before its response.
//! The first requests arrive late, because their connections have to be established. A window that counts
//! from the time of sending would therefore reopen too early, and the requests of a whole minute would be
//! rejected.

use crate::{Dimension, Flight, Gate, TokenCost};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(60);

/// Maximum time until a request arrives at the provider.
pub(in crate::policy) const ARRIVAL_MARGIN: Duration = Duration::from_secs(2);

/// A sliding window. It contains each request from the time it is sent until 60 seconds after its arrival,
/// whether it has ended or not.
#[derive(Debug, Clone, Default)]
pub(super) struct SlidingWindow {
    /// The oldest first.
    sends: VecDeque<WindowEntry>,
    /// Number of entries removed, which is the number of the first entry.
    removed: u64,
    numbers: HashMap<Flight, u64>,
    /// Number of entries whose request was not sent.
    withdrawn: u64,
    used: TokenCost,
}

#[derive(Debug, Clone, Copy)]
struct WindowEntry {
    sent: Duration,
    /// The latest time at which it may have arrived.
    arrived: Duration,
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
    /// Removes entries older than the window.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some(send) = self.sends.front().copied() {
            if send.arrived + WINDOW > now {
                return;
            }
            self.sends.pop_front();
            self.removed += 1;
            self.numbers.remove(&send.flight);
            self.take(send.cost);
            self.withdrawn -= u64::from(send.is_withdrawn);
        }
    }

    pub(super) fn push(&mut self, sent: Duration, flight: Flight, cost: TokenCost) {
        self.numbers.insert(flight, self.removed + self.sends.len() as u64);
        let arrived = sent + ARRIVAL_MARGIN;
        self.sends.push_back(WindowEntry { sent, arrived, flight, cost, is_withdrawn: false });
        self.used += cost;
    }

    /// Records the response to a request, before which it has arrived.
    pub(super) fn respond(&mut self, now: Duration, flight: Flight) {
        if let Some(send) = self.find(flight) {
            send.arrived = send.arrived.min(now);
        }
    }

    /// Marks a request as not sent. Its entry stays and counts as nothing.
    pub(super) fn withdraw(&mut self, flight: Flight) {
        self.settle(flight, TokenCost::default());
        if let Some(send) = self.find(flight) {
            send.is_withdrawn = true;
            self.withdrawn += 1;
            self.numbers.remove(&flight);
        }
    }

    fn find(&mut self, flight: Flight) -> Option<&mut WindowEntry> {
        let index = self.numbers.get(&flight)? - self.removed;
        self.sends.get_mut(index as usize)
    }

    /// Replaces the estimate of a request that is still in the window by the actual cost.
    pub(super) fn settle(&mut self, flight: Flight, actual: TokenCost) {
        let Some(send) = self.find(flight) else { return };
        let estimate = std::mem::replace(&mut send.cost, actual);
        self.take(estimate);
        self.used += actual;
    }

    pub(super) fn used(&self) -> TokenCost {
        self.used
    }

    /// Returns whether a request of that cost fits under a limit, or when it will. Call
    /// [`SlidingWindow::advance`] before.
    pub(super) fn gate(&self, dimension: Dimension, limit: u64, cost: TokenCost) -> Gate {
        let needed = amount(dimension, cost);
        if needed > limit {
            // It never fits, so it is sent alone.
            let last = self.sends.iter().rev().find(|send| !send.is_withdrawn);
            return last.map_or(Gate::Open, |last| Gate::Until(last.arrived + WINDOW));
        }
        let used = match dimension {
            Dimension::Requests => self.sends.len() as u64 - self.withdrawn,
            _ => amount(dimension, self.used),
        };
        let mut excess = used.saturating_add(needed).saturating_sub(limit);
        if excess == 0 {
            return Gate::Open;
        }
        let mut latest = Duration::ZERO;
        for send in &self.sends {
            excess = excess.saturating_sub(send.amount(dimension));
            // Entries leave in the order of sending.
            latest = latest.max(send.arrived);
            if excess == 0 {
                return Gate::Until(latest + WINDOW);
            }
        }
        // Not reached: the usage is the sum of the entries.
        Gate::Open
    }

    /// Returns when the last `burst` requests are old enough for another one.
    pub(super) fn spaced(&self, burst: u32, length: Duration) -> Gate {
        let mut sends = self.sends.iter().rev().filter(|send| !send.is_withdrawn);
        let first = sends.nth(burst.saturating_sub(1) as usize);
        first.map_or(Gate::Open, |first| Gate::Until(first.sent + length))
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
