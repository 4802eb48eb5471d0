//! The retry policy: the only code that decides whether and when a call is retried.

use bakeoff_core::ErrorKind;
use std::time::Duration;

/// When to retry a call and when to fail it.
///
/// ```
/// use bakeoff_pace::RetryPolicy;
/// use std::time::Duration;
///
/// let policy = RetryPolicy::default().max_retries(3).timeout(Duration::from_secs(30));
/// assert_eq!(policy.max_retries, Some(3));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Maximum of the first pause; the maximum doubles with each retry.
    pub base: Duration,
    /// Maximum of all pauses, except those that the provider asks for.
    pub cap: Duration,
    /// Maximum number of retries after transient errors.
    pub max_transient: u32,
    /// Maximum number of retries of any kind; throttled calls have no limit of their own.
    pub max_retries: Option<u32>,
    /// Time limit for the call, without waiting for permits.
    pub timeout: Duration,
    /// Time limit for one attempt.
    pub attempt_timeout: Option<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
            max_transient: 8,
            max_retries: None,
            timeout: Duration::from_secs(600),
            attempt_timeout: None,
        }
    }
}

/// The retries of a call so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetryProgress {
    /// Retries of any kind.
    pub retries: u32,
    /// Retries after transient errors.
    pub transient: u32,
    /// Time since the first attempt, without waiting for permits.
    pub spent: Duration,
}

impl RetryPolicy {
    /// Sets the maximum of the first pause.
    #[must_use]
    pub fn base(mut self, base: Duration) -> RetryPolicy {
        self.base = base;
        self
    }

    /// Sets the maximum of all pauses.
    #[must_use]
    pub fn cap(mut self, cap: Duration) -> RetryPolicy {
        self.cap = cap;
        self
    }

    /// Sets the maximum number of retries after transient errors.
    #[must_use]
    pub fn max_transient(mut self, max_transient: u32) -> RetryPolicy {
        self.max_transient = max_transient;
        self
    }

    /// Sets the maximum number of retries of any kind.
    #[must_use]
    pub fn max_retries(mut self, max_retries: u32) -> RetryPolicy {
        self.max_retries = Some(max_retries);
        self
    }

    /// Sets the time limit for the call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> RetryPolicy {
        self.timeout = timeout;
        self
    }

    /// Sets the time limit for one attempt.
    #[must_use]
    pub fn attempt_timeout(mut self, attempt_timeout: Duration) -> RetryPolicy {
        self.attempt_timeout = Some(attempt_timeout);
        self
    }

    /// Returns the pause before the next attempt, or `None` if the call fails.
    ///
    /// Exponential backoff with full jitter: `chance` is uniform between 0 and 1. A wait that the
    /// provider asks for (`hint`) is kept in full, with jitter on top, so that calls do not all return
    /// at the same moment.
    pub fn pause(
        &self,
        kind: ErrorKind,
        progress: RetryProgress,
        hint: Option<Duration>,
        chance: f64,
    ) -> Option<Duration> {
        let doubled = 2_u32.saturating_pow(progress.retries.min(30));
        let max = self.base.saturating_mul(doubled).min(self.cap);
        let pause = match hint {
            Some(hint) => hint.saturating_add(self.base.mul_f64(chance)),
            None => max.mul_f64(chance),
        };
        self.allows(kind, progress, pause).then_some(pause)
    }

    /// Returns whether another attempt is allowed after that pause.
    pub fn allows(&self, kind: ErrorKind, progress: RetryProgress, pause: Duration) -> bool {
        let within = match kind {
            ErrorKind::RateLimit => true,
            ErrorKind::Transient | ErrorKind::Timeout => progress.transient < self.max_transient,
            _ => false,
        };
        within
            && self.max_retries.is_none_or(|max| progress.retries < max)
            && progress.spent.saturating_add(pause) <= self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        base: Duration::from_secs(1),
        cap: Duration::from_secs(60),
        max_transient: 2,
        max_retries: None,
        timeout: Duration::from_secs(600),
        attempt_timeout: None,
    };

    fn after(retries: u32) -> RetryProgress {
        RetryProgress { retries, transient: retries, spent: Duration::ZERO }
    }

    #[test]
    fn pauses_double_up_to_the_cap_with_full_jitter() {
        let pause = |retries, chance| {
            POLICY.pause(ErrorKind::RateLimit, after(retries), None, chance).unwrap().as_secs_f64()
        };
        assert_eq!([pause(0, 1.0), pause(1, 1.0), pause(5, 1.0)], [1.0, 2.0, 32.0]);
        assert_eq!([pause(6, 1.0), pause(40, 1.0)], [60.0, 60.0]);
        assert_eq!([pause(3, 0.0), pause(3, 0.5)], [0.0, 4.0]);
    }

    #[test]
    fn provider_wait_is_kept_in_full() {
        let hint = Some(Duration::from_secs(90));
        let pause = |chance| POLICY.pause(ErrorKind::RateLimit, after(0), hint, chance);
        assert_eq!(pause(0.0), hint);
        assert_eq!(pause(1.0), Some(Duration::from_secs(91)));
    }

    #[test]
    fn transient_errors_are_limited_by_count_and_throttles_by_time() {
        assert!(POLICY.pause(ErrorKind::Transient, after(1), None, 0.0).is_some());
        assert!(POLICY.pause(ErrorKind::Transient, after(2), None, 0.0).is_none());
        assert!(POLICY.pause(ErrorKind::Timeout, after(2), None, 0.0).is_none());
        assert!(POLICY.pause(ErrorKind::RateLimit, after(500), None, 0.0).is_some());
        let late = RetryProgress { spent: Duration::from_secs(595), ..after(3) };
        assert!(POLICY.pause(ErrorKind::RateLimit, late, None, 1.0).is_none());
    }

    #[test]
    fn max_retries_limits_throttled_calls() {
        let policy = RetryPolicy { max_retries: Some(0), ..POLICY };
        assert!(policy.pause(ErrorKind::RateLimit, after(0), None, 0.0).is_none());
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        for kind in [ErrorKind::Auth, ErrorKind::Quota, ErrorKind::InvalidRequest] {
            assert!(POLICY.pause(kind, after(0), None, 0.0).is_none());
        }
    }
}
