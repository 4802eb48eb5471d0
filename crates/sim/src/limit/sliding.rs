//! Sliding window with a maximum number of requests.

use super::{LimitLevel, wait_from_seconds};
use crate::SlidingWindow;
use crate::latency::seconds;
use std::collections::VecDeque;
use std::time::Duration;

/// Times of the requests within the last period.
#[derive(Debug, Clone)]
pub(crate) struct SlidingLog {
    limit: usize,
    length: Duration,
    now: Duration,
    times: VecDeque<Duration>,
}

impl SlidingLog {
    pub(crate) fn new(window: SlidingWindow) -> SlidingLog {
        SlidingLog {
            limit: usize::try_from(window.requests).unwrap_or(usize::MAX),
            length: seconds(window.seconds),
            now: Duration::ZERO,
            times: VecDeque::new(),
        }
    }

    /// Removes the requests that are older than the period.
    pub(crate) fn advance(&mut self, now: Duration) {
        self.now = now;
        while self.times.front().is_some_and(|time| time.saturating_add(self.length) <= now) {
            self.times.pop_front();
        }
    }

    /// Counts a request. The log holds at most the limit: a charged failure beyond it replaces the oldest.
    pub(crate) fn take(&mut self) {
        if self.times.len() >= self.limit {
            self.times.pop_front();
        }
        self.times.push_back(self.now);
    }

    /// Returns the time until the oldest request leaves the window, if the window is full.
    pub(crate) fn wait(&self) -> Option<Duration> {
        (self.times.len() >= self.limit).then(|| self.until_expiry(self.times.front()))
    }

    /// Returns the time until the window is empty.
    pub(crate) fn reset(&self) -> Duration {
        self.until_expiry(self.times.back())
    }

    fn until_expiry(&self, time: Option<&Duration>) -> Duration {
        let Some(time) = time else { return Duration::ZERO };
        wait_from_seconds(time.saturating_add(self.length).saturating_sub(self.now).as_secs_f64())
    }

    /// Returns the level for headers.
    pub(crate) fn level(&self) -> LimitLevel {
        LimitLevel {
            limit: self.limit as f64,
            remaining: self.limit.saturating_sub(self.times.len()) as f64,
            reset: self.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted_at(log: &mut SlidingLog, second: f64) -> u64 {
        log.advance(seconds(second));
        let mut accepted = 0;
        while log.wait().is_none() {
            log.take();
            accepted += 1;
        }
        accepted
    }

    #[test]
    fn any_period_holds_at_most_the_limit() {
        let mut log = SlidingLog::new(SlidingWindow { requests: 3, seconds: 60.0 });
        log.take();
        log.advance(seconds(20.0));
        log.take();
        let accepted =
            [30.0, 59.9, 60.0, 79.9, 80.0, 90.0, 500.0].map(|second| accepted_at(&mut log, second));
        assert_eq!(accepted, [1, 0, 1, 0, 1, 1, 3]);
    }

    #[test]
    fn wait_ends_when_the_oldest_request_expires() {
        let mut log = SlidingLog::new(SlidingWindow { requests: 2, seconds: 60.0 });
        log.take();
        log.advance(seconds(15.0));
        assert_eq!((log.wait(), log.level().remaining), (None, 1.0));
        log.take();
        let wait = log.wait().unwrap();
        assert_eq!((wait.as_millis(), log.reset().as_millis()), (45_000, 60_000));
        log.advance(seconds(15.0) + wait);
        assert_eq!(log.wait(), None);
    }
}
