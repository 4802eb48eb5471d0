//! The hypothesis that so many requests are allowed in each window of fixed length.
//!
//! Such a window betrays itself: rejections for a long time, and then suddenly a whole burst goes
//! through, which no bucket would allow. [`Search`] looks for that and for the window's length;
//! [`Window`] then sends each window's requests when it opens, and is silent until the next.

use super::ledger::{Purpose, Sent};

/// Lengths that people give to windows, in seconds.
pub(super) const LENGTHS: [f64; 16] =
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0];
/// Shorter windows are paced like buckets.
pub(super) const SHORTEST: f64 = 3.5;
/// Fewest requests of a burst that count as a window.
const LEAST_BURST: f64 = 5.0;
/// A burst that is not over by then is no burst.
const LONGEST_BURST: f64 = 3.0;
/// A little later than exactly a window later.
const MARGIN: f64 = 0.02;

/// Looks for a window while requests are paced.
#[derive(Debug)]
pub(super) enum Search {
    /// Rejections since the last admission.
    Idle { rejections: u32, since: f64, last: f64 },
    /// Something was let in after a long silence: how much more?
    Burst { after: f64, opened: f64, silence: f64, first: u64, sent: f64, next: f64, interval: f64 },
    /// A burst went through: when does the next one?
    Seek { after: f64, opened: f64, count: f64, candidate: usize, is_out: bool },
}

/// What the search ends with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Finding {
    Window(Found),
    /// No window, but so many requests per second went through.
    Rate(f64),
}

/// A window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub(super) length: f64,
    pub(super) count: f64,
    /// A window opened between these times.
    pub(super) after: f64,
    pub(super) opened: f64,
    /// The number of the request that found it open.
    pub(super) number: u64,
}

impl Search {
    pub(super) fn new() -> Search {
        Search::Idle { rejections: 0, since: 0.0, last: 0.0 }
    }

    /// When the next request may go out, where the search has an opinion.
    pub(super) fn next_at(&self) -> Option<f64> {
        match *self {
            Search::Idle { .. } => None,
            Search::Burst { next, .. } => Some(next),
            Search::Seek { is_out: true, .. } => Some(f64::INFINITY),
            Search::Seek { opened, candidate, .. } => {
                LENGTHS.get(candidate).map(|length| opened + length + MARGIN)
            }
        }
    }

    pub(super) fn sent(&mut self, now: f64, patience: f64) {
        match self {
            Search::Burst { next, interval, sent, .. } => {
                // Twice as fast each round trip; overshooting costs a small share of the burst.
                *sent += 1.0;
                let fastest = patience / (*sent / 8.0).max(8.0);
                *interval = (*interval / (*interval / patience).exp2()).max(fastest);
                *next = now + *interval;
            }
            Search::Seek { is_out, .. } => *is_out = true,
            Search::Idle { .. } => {}
        }
    }

    /// A request was let in; `rate` is what was known before the silence.
    pub(super) fn admitted(
        &mut self,
        sent: Sent,
        now: f64,
        rate: f64,
        patience: f64,
    ) -> Option<Finding> {
        match *self {
            Search::Idle { rejections, since, last } => {
                let silence = sent.at - since;
                let is_long = rejections >= 3 && silence > 0.4 && rate * silence > 4.0;
                *self = if is_long && sent.at > last {
                    Search::Burst {
                        after: last,
                        opened: sent.at,
                        silence,
                        first: sent.number,
                        sent: 1.0,
                        next: now,
                        interval: patience,
                    }
                } else {
                    Search::new()
                };
                None
            }
            Search::Burst { opened, silence, first, .. } => {
                let duration = sent.at - opened;
                if duration < LONGEST_BURST.max(2.0 * silence) {
                    return None;
                }
                // No window lets in for so long.
                *self = Search::new();
                let count = sent.number.saturating_sub(first) as f64;
                Some(Finding::Rate(count / duration))
            }
            Search::Seek { after, opened, count, candidate, .. } => {
                let length = LENGTHS.get(candidate).copied().unwrap_or(1.0);
                if sent.at < opened + length {
                    return None;
                }
                *self = Search::new();
                Some(Finding::Window(Found {
                    length,
                    count,
                    after: after + length,
                    opened: opened + length + MARGIN,
                    number: sent.number,
                }))
            }
        }
    }

    /// A request came to nothing.
    pub(super) fn voided(&mut self) {
        if let Search::Seek { is_out, .. } = self {
            *is_out = false;
        }
    }

    /// A request bounced that was news.
    pub(super) fn bounced(&mut self, sent: Sent) {
        match self {
            Search::Idle { rejections, since, last } => {
                if *rejections == 0 {
                    *since = sent.at;
                }
                *rejections += 1;
                *last = sent.at;
            }
            Search::Burst { after, opened, silence, first, .. } => {
                let admitted = sent.number.saturating_sub(*first) as f64;
                let duration = sent.at - *opened;
                let is_burst = admitted >= LEAST_BURST
                    && (admitted - 2.0) / duration.max(1e-3) > 3.0 / *silence;
                let candidate = LENGTHS
                    .iter()
                    .position(|length| *opened + length > sent.at && *length > 0.98 * *silence);
                *self = match candidate {
                    Some(candidate) if is_burst => Search::Seek {
                        after: *after,
                        opened: *opened,
                        count: admitted,
                        candidate,
                        is_out: false,
                    },
                    _ => Search::Idle { rejections: 1, since: sent.at, last: sent.at },
                };
            }
            Search::Seek { candidate, is_out, .. } => {
                *is_out = false;
                *candidate += 1;
                if *candidate >= LENGTHS.len() {
                    *self = Search::new();
                }
            }
        }
    }
}

/// A window that is known.
#[derive(Debug)]
pub(super) struct Window {
    length: f64,
    count: f64,
    /// The next one opens between these times.
    after: f64,
    opened: f64,
    state: State,
    windows: u32,
    late: u32,
    /// Windows in a row that seemed to be much smaller.
    short: u32,
    /// Requests let in when it should have been full.
    leaks: u32,
    was_lengthened: bool,
    /// When the one before opened.
    previous: (f64, f64),
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Until the next one opens.
    Wait,
    /// One request finds out whether it has opened.
    Canary,
    /// It is open.
    Open { first: u64, sent: f64, next: f64, checks: u8 },
}

impl Window {
    pub(super) fn new(found: Found) -> Window {
        let state = State::Open { first: found.number, sent: 1.0, next: 0.0, checks: 0 };
        Window {
            length: found.length,
            count: found.count,
            after: found.after,
            opened: found.opened,
            state,
            windows: 0,
            late: 0,
            short: 0,
            leaks: 0,
            was_lengthened: false,
            previous: (found.after, found.opened),
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

    fn checks(&self) -> u8 {
        match self.windows {
            0 => 2,
            windows => u8::from(windows.is_multiple_of(6)),
        }
    }

    /// Go on until a rejection, to see whether there is more room now.
    fn is_open_ended(&self) -> bool {
        self.windows % 6 == 5
    }

    pub(super) fn next(&mut self, now: f64) -> Result<Purpose, Option<f64>> {
        loop {
            match self.state {
                State::Canary => return Err(None),
                State::Wait => {
                    let is_exact = self.opened - self.after < (0.012 * self.length).max(0.06);
                    let at = if is_exact { self.opened } else { (self.after + self.opened) / 2.0 };
                    return if now >= at { Ok(Purpose::Probe) } else { Err(Some(at)) };
                }
                State::Open { sent, next, checks, .. } => {
                    let is_early = now < self.opened + 0.5 * self.length;
                    if sent < self.count || (self.is_open_ended() && is_early && sent.is_finite()) {
                        return if now >= next { Ok(Purpose::Work) } else { Err(Some(next)) };
                    }
                    let silence = self.after + self.length - self.opened;
                    let share = [0.6, 0.9].get(usize::from(checks));
                    if let Some(share) = share.filter(|_| checks < self.checks()) {
                        let at = self.opened + share * silence;
                        return if now >= at { Ok(Purpose::Timed) } else { Err(Some(at)) };
                    }
                    self.close();
                }
            }
        }
    }

    fn close(&mut self) {
        self.previous = (self.after, self.opened);
        self.after += self.length;
        self.opened += self.length;
        self.windows += 1;
        self.late = 0;
        self.state = State::Wait;
    }

    pub(super) fn sent(&mut self, now: f64, purpose: Purpose) {
        match (&mut self.state, purpose) {
            (state @ State::Wait, _) => *state = State::Canary,
            (State::Open { sent, next, .. }, Purpose::Work) => {
                *sent += 1.0;
                // Past the known count one at a time.
                *next = now + if *sent < self.count { 0.3 / self.count } else { 0.15 };
            }
            (State::Open { checks, .. }, _) => *checks += 1,
            (State::Canary, _) => {}
        }
    }

    /// Returns whether the window is refuted.
    pub(super) fn admitted(&mut self, now: f64, sent: Sent) -> bool {
        match &mut self.state {
            State::Canary if sent.purpose == Purpose::Probe => {
                self.opened = self.opened.min(sent.at);
                self.state = State::Open { first: sent.number, sent: 1.0, next: now, checks: 0 };
            }
            State::Open { .. } if sent.purpose == Purpose::Work => {}
            _ if sent.purpose == Purpose::Timed => {
                // One may have taken a place that a failure left.
                self.leaks += 1;
                return self.leaks > 1;
            }
            _ => {}
        }
        false
    }

    /// Returns whether the window is refuted.
    pub(super) fn bounced(&mut self, sent: Sent) -> bool {
        match (&mut self.state, sent.purpose) {
            (State::Canary, Purpose::Probe) => {
                self.state = State::Wait;
                self.after = self.after.max(sent.at);
                if self.opened > self.after + 1e-6 {
                    return false;
                }
                // It should be open by now: a little later, or the next longer window.
                self.late += 1;
                if self.late <= 2 {
                    self.opened = self.after + 0.02 * self.length;
                    return false;
                }
                let (after, opened) = self.previous;
                let longer = LENGTHS.iter().find(|length| opened + **length > sent.at);
                let is_first = !std::mem::replace(&mut self.was_lengthened, true);
                let is_near = |length: &&f64| is_first && **length < 2.5 * self.length;
                let Some(length) = longer.filter(is_near) else {
                    return true;
                };
                // It is checked soon whether that is right.
                self.windows = 0;
                self.length = *length;
                self.after = (after + length).max(sent.at);
                self.opened = (opened + length).max(self.after + 0.02 * length);
                false
            }
            (State::Open { first, sent: out, .. }, Purpose::Work) => {
                if sent.number < *first || out.is_infinite() {
                    return false;
                }
                let admitted = (sent.number - *first) as f64;
                if admitted < 0.6 * self.count && self.short < 2 {
                    // What was let in was a rest of the window before.
                    self.short += 1;
                    self.state = State::Wait;
                    self.after = self.after.max(sent.at);
                    self.opened = self.opened.max(sent.at + 0.02 * self.length);
                    return false;
                }
                self.short = 0;
                if admitted < 0.6 * self.count {
                    // Windows do not shrink; something else is at work.
                    return true;
                }
                if admitted > self.count || admitted < self.count - 1.5 {
                    self.count = admitted.max(1.0);
                }
                // Nothing more goes out in this one.
                *out = f64::INFINITY;
                false
            }
            (_, Purpose::Timed) => {
                self.leaks = 0;
                false
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
