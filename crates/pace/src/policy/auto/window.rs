//! The hypothesis that so many requests are allowed in each window of fixed length: they go out
//! when it opens, and then nothing until the next.

use super::ledger::{Purpose, Sent};
use super::search::Found;

/// Lengths that people give to windows, in seconds.
pub(super) const LENGTHS: [f64; 16] =
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0];
/// Seconds in which a window's requests go out.
const BURST_S: f64 = 0.3;
/// A window that has not opened by then is no window, or one of another length.
const MOST_EARLY: u32 = 2;
/// One in so many windows is checked, and at which share of the silence after it.
const CHECK_EVERY: u32 = 6;
const CHECK_AT: f64 = 0.9;

/// A window that is known.
#[derive(Debug)]
pub(super) struct Window {
    length: f64,
    count: f64,
    /// The next one opens between these times.
    after: f64,
    opened: f64,
    state: State,
    /// Windows so far, and canaries in a row that came too early.
    windows: u32,
    early: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Until the next one opens.
    Wait,
    /// One request finds out whether it has opened.
    Canary,
    /// It is open: the number of its first request, and how many went out.
    Open { first: u64, sent: f64, next: f64 },
    /// It is used up, and one request finds out whether that is really so until the next.
    Check { is_out: bool },
}

impl Window {
    pub(super) fn new(found: Found) -> Window {
        Window {
            length: found.length,
            count: found.count,
            after: found.after,
            opened: found.opened,
            state: State::Open { first: found.number, sent: 1.0, next: 0.0 },
            windows: 0,
            early: 0,
        }
    }

    /// Requests in one window.
    pub(super) fn count(&self) -> f64 {
        self.count
    }

    /// Requests per second.
    pub(super) fn rate(&self) -> f64 {
        self.count / self.length
    }

    pub(super) fn next(&mut self, now: f64) -> Result<Purpose, Option<f64>> {
        if let State::Open { sent, .. } = self.state
            && sent >= self.count
        {
            self.state = State::Check { is_out: !self.windows.is_multiple_of(CHECK_EVERY) };
        }
        if let State::Check { is_out: true } = self.state {
            self.after += self.length;
            self.opened += self.length;
            self.early = 0;
            self.windows += 1;
            self.state = State::Wait;
        }
        let (at, purpose) = match self.state {
            State::Canary => return Err(None),
            State::Wait => (self.opened, Purpose::Probe),
            State::Open { next, .. } => (next, Purpose::Work),
            State::Check { .. } => {
                let silence = self.after + self.length - self.opened;
                (self.opened + CHECK_AT * silence, Purpose::Timed)
            }
        };
        if now >= at { Ok(purpose) } else { Err(Some(at)) }
    }

    pub(super) fn sent(&mut self, now: f64) {
        match &mut self.state {
            state @ State::Wait => *state = State::Canary,
            State::Open { sent, next, .. } => {
                *sent += 1.0;
                *next = now + BURST_S / self.count;
            }
            State::Check { is_out } => *is_out = true,
            State::Canary => {}
        }
    }

    /// Returns whether the window is refuted.
    pub(super) fn admitted(&mut self, now: f64, sent: Sent) -> bool {
        if let (State::Canary, Purpose::Probe) = (self.state, sent.purpose) {
            self.opened = self.opened.min(sent.at);
            self.state = State::Open { first: sent.number, sent: 1.0, next: now };
        }
        sent.purpose == Purpose::Timed
    }

    /// Returns whether the window is refuted.
    pub(super) fn bounced(&mut self, sent: Sent) -> bool {
        match (&mut self.state, sent.purpose) {
            (State::Canary, Purpose::Probe) => {
                self.state = State::Wait;
                // It should be open by now.
                self.early += 1;
                self.after = sent.at;
                self.opened = sent.at + 0.05 * self.length;
                self.early > MOST_EARLY
            }
            (State::Open { first, sent: out, .. }, Purpose::Work) if sent.number >= *first => {
                let admitted = (sent.number - *first) as f64;
                let was_full = out.is_infinite();
                // Nothing more goes out in this one.
                *out = f64::INFINITY;
                if was_full {
                    return false;
                }
                // Windows do not shrink; something else is at work.
                let is_other = admitted < 0.6 * self.count;
                if admitted < self.count - 1.5 {
                    self.count = admitted.max(1.0);
                }
                is_other
            }
            _ => false,
        }
    }

    /// A request came to nothing: another one may go out in its place.
    pub(super) fn voided(&mut self, sent: Sent) {
        match &mut self.state {
            State::Canary => self.state = State::Wait,
            State::Open { first, sent: out, .. } if sent.number > *first => {
                *first += 1;
                *out -= 1.0;
            }
            _ => {}
        }
    }
}
