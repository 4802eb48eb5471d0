//! A number of requests per day.

use super::Level;
use crate::latency::seconds;
use std::time::Duration;

const DAY_S: u64 = 86_400;

/// A daily quota. Days are counted from the engine's start.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    limit: u64,
    used: u64,
    day: u64,
}

impl Quota {
    pub(crate) fn new(limit: u64) -> Quota {
        Quota { limit, used: 0, day: 0 }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: Duration) {
        let day = now.as_secs() / DAY_S;
        if day > self.day {
            self.day = day;
            self.used = 0;
        }
    }

    /// Whether the day's requests are used up.
    pub(crate) fn is_empty(&self) -> bool {
        self.used >= self.limit
    }

    /// Counts a request.
    pub(crate) fn take(&mut self) {
        self.used += 1;
    }

    /// What headers say. Groq's show the time until the bucket of a day would be full again.
    pub(crate) fn level(&self) -> Level {
        let used = self.used.min(self.limit) as f64;
        let limit = self.limit as f64;
        Level { limit, remaining: limit - used, reset: seconds(used * DAY_S as f64 / limit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_used_up_until_the_next_day() {
        let mut quota = Quota::new(2);
        quota.take();
        assert!(!quota.is_empty());
        quota.take();
        quota.advance(Duration::from_secs(86_399));
        assert!(quota.is_empty());
        quota.advance(Duration::from_secs(86_400));
        assert!(!quota.is_empty());
    }

    #[test]
    fn headers_show_a_day() {
        // Groq's documented sample: 14370 of 14400 left and 2m59.56s; the exact figure is 180 s.
        let mut quota = Quota::new(14_400);
        (0..30).for_each(|_| quota.take());
        let Level { remaining, reset, .. } = quota.level();
        assert_eq!((remaining, reset), (14_370.0, Duration::from_secs(180)));
    }
}
