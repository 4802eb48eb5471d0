//! Pacing of a measurement: probe above the limit without flooding the provider.
//!
//! After a rejection requests are sent one at a time. Every batch that is accepted doubles the size of the
//! next one.

use super::stage::NextAction;

/// Minimum pause after a rejection, in seconds.
const MIN_PAUSE: f64 = 0.002;
/// Minimum number of polls between two requests that a rate limit accepts.
const MIN_POLLS: u32 = 4;
/// Golden section: the fractional parts of its multiples are spread evenly.
const GOLDEN_SECTION: f64 = 0.618_034;

/// State of the pacing. Times are seconds since the start of the probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeasurePacer {
    pub(super) max_in_flight: u32,
    /// Size of the current batch.
    batch_size: u32,
    /// Requests sent in the current batch.
    sent: u32,
    last_sent: f64,
    /// Time of the next request after a rejection.
    next_poll: f64,
    /// Minimum pause after a rejection.
    min_pause: f64,
    rejecting_since: Option<f64>,
    /// Requests accepted since the last rejection.
    accepted: u32,
    /// Requests rejected since the last accepted one.
    rejected: u32,
    /// Number of batches that were accepted after rejections.
    accepted_batches: u32,
    /// Whether the limit appears to be a rate.
    pub(super) is_rate: bool,
}

impl MeasurePacer {
    pub(super) fn new(now: f64, max_in_flight: u32, min_pause: f64) -> MeasurePacer {
        MeasurePacer {
            max_in_flight,
            batch_size: 1,
            sent: 0,
            last_sent: now,
            next_poll: now,
            min_pause,
            rejecting_since: Some(now),
            accepted: 0,
            rejected: 0,
            accepted_batches: 0,
            is_rate: false,
        }
    }

    /// Returns what to do now. A request counts as accepted after `acceptance_delay` seconds in flight.
    pub(super) fn next(
        &mut self,
        now: f64,
        in_flight: u32,
        acceptance_delay: f64,
        max_connections: u32,
    ) -> NextAction {
        if now < self.next_poll {
            return NextAction::WaitUntil(self.next_poll);
        }
        let accepted_at = self.last_sent + acceptance_delay;
        if self.sent >= self.batch_size {
            if now < accepted_at {
                return NextAction::WaitUntil(accepted_at);
            }
            self.accept_batch();
        }
        if in_flight < self.max_in_flight {
            return NextAction::Send;
        }
        if self.max_in_flight >= max_connections {
            return NextAction::WaitForOutcome;
        }
        if now < accepted_at {
            return NextAction::WaitUntil(accepted_at);
        }
        // The load should exceed the limit, but all requests were accepted.
        self.max_in_flight =
            (self.max_in_flight + (self.max_in_flight / 2).max(1)).min(max_connections);
        NextAction::Send
    }

    /// Adapts pause and load after an accepted batch, and starts the next one.
    fn accept_batch(&mut self) {
        self.accepted += self.sent;
        self.rejecting_since = None;
        // Too few polls miss the moment when the next request is possible; too many are wasted.
        if self.is_rate && (1..MIN_POLLS).contains(&self.rejected) {
            self.min_pause = (self.min_pause / 2.0).max(MIN_PAUSE);
        } else if self.rejected > 3 * MIN_POLLS {
            self.min_pause *= 2.0;
        }
        self.accepted_batches += u32::from(self.rejected > 0);
        self.rejected = 0;
        // Without rejections the load is too low to find the limit.
        if self.accepted > 2 * self.max_in_flight {
            self.max_in_flight += self.max_in_flight / 2;
            self.accepted = self.accepted.min(self.max_in_flight);
        }
        self.batch_size = (self.batch_size * 2).min(self.max_in_flight);
        self.sent = 0;
    }

    pub(super) fn record_sent(&mut self, now: f64) {
        self.sent += 1;
        self.last_sent = now;
    }

    pub(super) fn record_rejection(&mut self, now: f64) {
        // Several requests accepted at once: polling was too slow to see how fast the quota is restored.
        if self.accepted >= 3 {
            self.min_pause = (self.min_pause / 2.0).max(MIN_PAUSE);
        }
        self.rejected += 1;
        let rejecting_since = *self.rejecting_since.get_or_insert(now);
        (self.batch_size, self.sent, self.accepted) = (1, 0, 0);
        // Jitter keeps the polls out of phase with the provider; in phase, they would hide the exact moment
        // when it accepts the next request.
        let jitter = 0.75 + 0.5 * (f64::from(self.accepted_batches) * GOLDEN_SECTION).fract();
        self.next_poll = now + jitter * self.min_pause.max((now - rejecting_since) / 12.0);
    }
}
