//! Daily request quota.

use super::LimitLevel;
use crate::latency::seconds;
use std::time::Duration;

const DAY_S: u64 = 86_400;

/// State of a daily quota. Days count from the engine's start.
#[derive(Debug, Clone)]
pub(crate) struct DailyQuota {
    limit: u64,
    used: u64,
    day: u64,
}

impl DailyQuota {
    pub(crate) fn new(limit: u64) -> DailyQuota {
        DailyQuota { limit, used: 0, day: 0 }
    }

    /// Advances the quota to `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        let day = now.as_secs() / DAY_S;
        if day > self.day {
            self.day = day;
            self.used = 0;
        }
    }

    /// Whether the quota of the day is exhausted.
    pub(crate) fn is_empty(&self) -> bool {
        self.used >= self.limit
    }

    /// Counts a request.
    pub(crate) fn take(&mut self) {
        self.used += 1;
    }

    /// Returns the level for headers. Groq's headers give the time until a bucket of one day would be
    /// full again.
    pub(crate) fn level(&self) -> LimitLevel {
        let used = self.used.min(self.limit) as f64;
        let limit = self.limit as f64;
        LimitLevel { limit, remaining: limit - used, reset: seconds(used * DAY_S as f64 / limit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_quota_is_restored_the_next_day() {
        let mut quota = DailyQuota::new(2);
        quota.take();
        assert!(!quota.is_empty());
        quota.take();
        quota.advance(Duration::from_secs(86_399));
        assert!(quota.is_empty());
        quota.advance(Duration::from_secs(86_400));
        assert!(!quota.is_empty());
    }

    #[test]
    fn level_refills_over_a_day() {
        // Groq's documented sample: 14370 of 14400 left and 2m59.56s; the exact figure is 180 s.
        let mut quota = DailyQuota::new(14_400);
        (0..30).for_each(|_| quota.take());
        let LimitLevel { remaining, reset, .. } = quota.level();
        assert_eq!((remaining, reset), (14_370.0, Duration::from_secs(180)));
    }
}
