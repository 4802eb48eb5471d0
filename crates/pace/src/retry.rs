//! The retry policy: the only code that decides whether and when a call is retried.

use crate::{DelayEnd, PermitRequest, RetryMode};
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

/// Maximum number of retries after responses that do not match the format. Such responses are paid for.
const MAX_MALFORMED: u32 = 2;

/// Length of an outage up to which its failures do not count against a call.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(120);

/// The retries of a call so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetryProgress {
    /// Retries of any kind.
    pub retries: u32,
    /// Retries after transient errors.
    pub transient: u32,
    /// Retries after malformed responses.
    pub malformed: u32,
    /// Retries after timeouts.
    pub timeouts: u32,
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

    /// Returns how a failed call is retried, and counts the retry; `None` if the call fails.
    ///
    /// Exponential backoff with full jitter: `chance` is uniform between 0 and 1. A wait that the
    /// provider asks for is kept in full, with jitter on top, so that calls do not all return at the
    /// same moment.
    pub fn retry(
        &self,
        attempt: FailedAttempt,
        progress: &mut RetryProgress,
        chance: f64,
    ) -> Option<RetryDelay> {
        let is_throttled = attempt.kind == ErrorKind::RateLimit;
        // Rejections say nothing about how long an error lasts.
        let failures = progress.transient.saturating_add(progress.malformed);
        let exponent = if is_throttled { progress.retries } else { failures };
        let doubled = 2_u32.saturating_pow(exponent.min(30));
        let max = self.base.saturating_mul(doubled).min(self.cap);
        let backoff = match attempt.hint {
            Some(hint) => hint.saturating_add(self.base.mul_f64(chance)),
            None => max.mul_f64(chance),
        };
        let pause = match attempt.mode {
            // The pool decides when the provider is tested again.
            _ if !is_throttled && attempt.outage.is_some() => Duration::ZERO,
            // Waiting in the queue does not use up the call's timeout.
            RetryMode::Queue if is_throttled => Duration::ZERO,
            RetryMode::After(pause) if is_throttled => pause,
            _ => backoff,
        };
        if !self.allows(attempt, *progress, pause) {
            return None;
        }
        progress.spent = progress.spent.saturating_add(pause);
        progress.retries += 1;
        match attempt.kind {
            ErrorKind::RateLimit => {}
            ErrorKind::MalformedResponse => progress.malformed += 1,
            _ if attempt.is_in_outage() => {}
            _ => progress.transient += 1,
        }
        progress.timeouts += u32::from(attempt.kind == ErrorKind::Timeout);
        let end = match attempt.mode {
            _ if !is_throttled => DelayEnd::Recovery,
            RetryMode::Backoff if attempt.hint.is_none() => DelayEnd::Idle,
            _ => DelayEnd::Never,
        };
        Some(RetryDelay { pause, end })
    }

    fn allows(&self, attempt: FailedAttempt, progress: RetryProgress, pause: Duration) -> bool {
        let within = match attempt.kind {
            ErrorKind::RateLimit => true,
            ErrorKind::Transient | ErrorKind::Timeout => {
                attempt.is_in_outage() || progress.transient < self.max_transient
            }
            ErrorKind::MalformedResponse => progress.malformed < MAX_MALFORMED,
            _ => false,
        };
        within
            && self.max_retries.is_none_or(|max| progress.retries < max)
            && progress.spent.saturating_add(pause) < self.timeout
    }
}

/// A failed attempt of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The wait that the provider asks for.
    pub hint: Option<Duration>,
    /// How the pool retries rejected requests.
    pub mode: RetryMode,
    /// Length of the provider's outage, if it is down.
    pub outage: Option<Duration>,
}

impl FailedAttempt {
    /// Whether the failure is part of an outage that does not count against the call: the pool sends it
    /// again only to test whether the provider has recovered.
    fn is_in_outage(self) -> bool {
        self.outage.is_some_and(|outage| outage <= OUTAGE_PATIENCE)
    }
}

/// The delay of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryDelay {
    /// Time before the retry enters the queue; zero when the pool decides alone.
    pub pause: Duration,
    /// What ends it before its time.
    pub end: DelayEnd,
}

impl RetryDelay {
    /// Applies the delay to a request for a permit.
    #[must_use]
    pub fn apply(self, request: PermitRequest) -> PermitRequest {
        request.delayed(self.pause, self.end)
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
        RetryProgress { retries, transient: retries, ..RetryProgress::default() }
    }

    fn failed(kind: ErrorKind) -> FailedAttempt {
        FailedAttempt { kind, hint: None, mode: RetryMode::Backoff, outage: None }
    }

    /// Returns the pause before the retry.
    fn pause(attempt: FailedAttempt, mut progress: RetryProgress, chance: f64) -> Option<f64> {
        let delay = POLICY.retry(attempt, &mut progress, chance)?;
        Some(delay.pause.as_secs_f64())
    }

    #[test]
    fn pauses_double_up_to_the_cap_with_full_jitter() {
        let pause =
            |retries, chance| pause(failed(ErrorKind::RateLimit), after(retries), chance).unwrap();
        assert_eq!([pause(0, 1.0), pause(1, 1.0), pause(5, 1.0)], [1.0, 2.0, 32.0]);
        assert_eq!([pause(6, 1.0), pause(40, 1.0)], [60.0, 60.0]);
        assert_eq!([pause(3, 0.0), pause(3, 0.5)], [0.0, 4.0]);
    }

    #[test]
    fn rejections_do_not_lengthen_the_pause_after_an_error() {
        let progress = RetryProgress { retries: 5, ..after(0) };
        assert_eq!(pause(failed(ErrorKind::Transient), progress, 1.0), Some(1.0));
        assert_eq!(pause(failed(ErrorKind::RateLimit), progress, 1.0), Some(32.0));
    }

    #[test]
    fn provider_wait_is_kept_in_full() {
        let hint = Some(Duration::from_secs(90));
        let attempt = FailedAttempt { hint, ..failed(ErrorKind::RateLimit) };
        assert_eq!(pause(attempt, after(0), 0.0), Some(90.0));
        assert_eq!(pause(attempt, after(0), 1.0), Some(91.0));
    }

    #[test]
    fn transient_errors_are_limited_by_count_and_throttles_by_time() {
        assert!(pause(failed(ErrorKind::Transient), after(1), 0.0).is_some());
        assert!(pause(failed(ErrorKind::Transient), after(2), 0.0).is_none());
        assert!(pause(failed(ErrorKind::Timeout), after(2), 0.0).is_none());
        assert!(pause(failed(ErrorKind::RateLimit), after(500), 0.0).is_some());
        let late = RetryProgress { spent: Duration::from_secs(595), ..after(3) };
        assert!(pause(failed(ErrorKind::RateLimit), late, 1.0).is_none());
    }

    #[test]
    fn rejected_requests_return_as_the_pool_decides() {
        let attempt = |kind, mode| FailedAttempt { mode, ..failed(kind) };
        let exactly = RetryMode::After(Duration::from_secs(7));
        for (mode, expected) in [(RetryMode::Queue, 0.0), (exactly, 7.0)] {
            let rejected = attempt(ErrorKind::RateLimit, mode);
            assert_eq!(pause(rejected, after(0), 1.0), Some(expected));
            assert_eq!(pause(attempt(ErrorKind::Transient, mode), after(0), 1.0), Some(1.0));
        }
    }

    #[test]
    fn failures_in_an_outage_do_not_count_for_two_minutes() {
        let attempt = |seconds| FailedAttempt {
            outage: Some(Duration::from_secs(seconds)),
            ..failed(ErrorKind::Transient)
        };
        let mut progress = after(1);
        for _ in 0..50 {
            let delay = POLICY.retry(attempt(120), &mut progress, 1.0).unwrap();
            assert_eq!((delay.pause, delay.end), (Duration::ZERO, DelayEnd::Recovery));
        }
        assert_eq!((progress.retries, progress.transient), (51, 1));
        assert!(POLICY.retry(attempt(121), &mut progress, 1.0).is_some());
        assert!(POLICY.retry(attempt(121), &mut progress, 1.0).is_none());
    }

    #[test]
    fn malformed_responses_are_retried_twice() {
        let mut progress = RetryProgress::default();
        let malformed = failed(ErrorKind::MalformedResponse);
        for retried in [true, true, false] {
            assert_eq!(POLICY.retry(malformed, &mut progress, 0.0).is_some(), retried);
        }
        assert_eq!(progress.transient, 0);
    }

    #[test]
    fn max_retries_limits_throttled_calls() {
        let policy = RetryPolicy { max_retries: Some(0), ..POLICY };
        let mut progress = RetryProgress::default();
        assert!(policy.retry(failed(ErrorKind::RateLimit), &mut progress, 0.0).is_none());
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        for kind in [ErrorKind::Auth, ErrorKind::Quota, ErrorKind::InvalidRequest] {
            assert!(pause(failed(kind), after(0), 0.0).is_none());
        }
    }
}
