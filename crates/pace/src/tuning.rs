//! Changes of a pool's limits while it is in use.

use std::time::Duration;

/// A change of a pool's limits; absent parts stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitTuning {
    /// Maximum number of requests in flight, at least 1.
    pub max_connections: Option<u32>,
    /// Requests per minute, at least 1.
    pub rpm: Option<u64>,
    /// Whether the pool is paused: requests in flight finish, and no further ones are sent.
    pub paused: Option<bool>,
}

/// A rate set for a strategy that has none of its own. Requests are spread evenly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpacedRate {
    interval: Duration,
    next_at: Duration,
}

impl SpacedRate {
    pub(crate) fn new(now: Duration, rpm: u64) -> SpacedRate {
        let interval = Duration::from_secs_f64(60.0 / rpm.max(1) as f64);
        SpacedRate { interval, next_at: now }
    }

    /// Returns when the next request may be sent.
    pub(crate) fn next_at(&self) -> Duration {
        self.next_at
    }

    pub(crate) fn on_sent(&mut self, now: Duration) {
        self.next_at = self.next_at.max(now) + self.interval;
    }
}
