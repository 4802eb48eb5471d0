//! Asking for more than there is, without a storm: after a rejection one request at a time, and
//! twice as many with every round that was accepted.

use super::search::Next;

/// Shortest pause after a rejection.
const SHORTEST_PAUSE: f64 = 0.002;
/// How often it is asked at least, between two requests that a rate accepts.
const ASKED: u32 = 4;
/// Multiples of it are spread evenly between whole numbers.
const GOLDEN_SECTION: f64 = 0.618_034;

/// Where the asking stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pub(super) most: u32,
    size: u32,
    pub(super) sent: u32,
    pub(super) last_at: f64,
    /// The next request after a rejection goes out then.
    poll_at: f64,
    /// Least pause after a rejection.
    least_pause: f64,
    shut_since: Option<f64>,
    /// Accepted since the last rejection.
    accepted: u32,
    /// Rejected since the last that was accepted.
    rejected: u32,
    /// How often requests were accepted after rejections.
    batches: u32,
    /// Limited per time, as it seems.
    pub(super) is_rate: bool,
}

impl Round {
    pub(super) fn new(now: f64, most: u32, least_pause: f64) -> Round {
        Round {
            most,
            size: 1,
            sent: 0,
            last_at: now,
            poll_at: now,
            least_pause,
            shut_since: Some(now),
            accepted: 0,
            rejected: 0,
            batches: 0,
            is_rate: false,
        }
    }

    pub(super) fn next(&mut self, now: f64, in_flight: u32, patience: f64, max: u32) -> Next {
        if now < self.poll_at {
            return Next::Until(self.poll_at);
        }
        let decided_at = self.last_at + patience;
        if self.sent >= self.size {
            if now < decided_at {
                return Next::Until(decided_at);
            }
            self.accepted += self.sent;
            self.shut_since = None;
            // Asked too seldom to see when the next one is possible, or far more often than needed.
            if self.is_rate && (1..ASKED).contains(&self.rejected) {
                self.least_pause = (self.least_pause / 2.0).max(SHORTEST_PAUSE);
            } else if self.rejected > 3 * ASKED {
                self.least_pause *= 2.0;
            }
            self.batches += u32::from(self.rejected > 0);
            self.rejected = 0;
            // Nothing is rejected any more: these are not enough to find the limit.
            if self.accepted > 2 * self.most {
                self.most += self.most / 2;
                self.accepted = self.accepted.min(self.most);
            }
            self.size = (self.size * 2).min(self.most);
            self.sent = 0;
        }
        if in_flight < self.most {
            return Next::Send;
        }
        if self.most >= max {
            return Next::Listen;
        }
        if now < decided_at {
            return Next::Until(decided_at);
        }
        // As many are in flight as should be too many, and all of them were accepted.
        self.most = (self.most + (self.most / 2).max(1)).min(max);
        Next::Send
    }

    pub(super) fn rejected(&mut self, now: f64) {
        // More than a few at once: asked too seldom to see how fast they come.
        if self.accepted >= 3 {
            self.least_pause = (self.least_pause / 2.0).max(SHORTEST_PAUSE);
        }
        self.rejected += 1;
        let shut_since = *self.shut_since.get_or_insert(now);
        (self.size, self.sent, self.accepted) = (1, 0, 0);
        // Never in step with the provider, which would hide when exactly it accepts the next one.
        let dither = 0.75 + 0.5 * (f64::from(self.batches) * GOLDEN_SECTION).fract();
        self.poll_at = now + dither * self.least_pause.max((now - shut_since) / 12.0);
    }
}
