//! The one place that decides whether a call is made again, and when.

use bakeoff_core::ErrorKind;
use std::time::Duration;

/// When to try again and when to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The first pause is up to this long, the second up to twice as long, …
    pub base: Duration,
    /// No pause that we choose ourselves is longer.
    pub cap: Duration,
    /// Most retries of transient errors.
    pub max_transient: u32,
    /// Most retries of any kind; throttles have no bound of their own.
    pub max_retries: Option<u32>,
    /// Most time for the whole call, waiting for permits left out.
    pub timeout: Duration,
    /// Most time for one attempt.
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

/// What a call has gone through so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetryProgress {
    /// Retries made, of any kind.
    pub retries: u32,
    /// Retries made after transient errors.
    pub transient: u32,
    /// Time since the first attempt, waiting for permits left out.
    pub spent: Duration,
}

impl RetryPolicy {
    /// How long to pause before the next attempt; `None` when there should be none.
    ///
    /// Exponential with full jitter: `chance` is uniform between 0 and 1. What the provider asked
    /// for is kept in full, with jitter on top, so that waiters do not all come back at once.
    pub fn pause(
        &self,
        kind: ErrorKind,
        waited: RetryProgress,
        asked: Option<Duration>,
        chance: f64,
    ) -> Option<Duration> {
        let doubled = 2_u32.saturating_pow(waited.retries.min(30));
        let longest = self.base.saturating_mul(doubled).min(self.cap);
        let pause = match asked {
            Some(asked) => asked.saturating_add(self.base.mul_f64(chance)),
            None => longest.mul_f64(chance),
        };
        self.allows(kind, waited, pause).then_some(pause)
    }

    /// Whether there should be another attempt after that pause.
    pub fn allows(&self, kind: ErrorKind, waited: RetryProgress, pause: Duration) -> bool {
        let within = match kind {
            ErrorKind::RateLimit => true,
            ErrorKind::Transient | ErrorKind::Timeout => waited.transient < self.max_transient,
            _ => false,
        };
        within
            && self.max_retries.is_none_or(|most| waited.retries < most)
            && waited.spent.saturating_add(pause) <= self.timeout
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
    fn what_the_provider_asked_for_is_kept_in_full() {
        let asked = Some(Duration::from_secs(90));
        let pause = |chance| POLICY.pause(ErrorKind::RateLimit, after(0), asked, chance);
        assert_eq!(pause(0.0), asked);
        assert_eq!(pause(1.0), Some(Duration::from_secs(91)));
    }

    #[test]
    fn transient_errors_have_a_bound_and_throttles_a_deadline() {
        assert!(POLICY.pause(ErrorKind::Transient, after(1), None, 0.0).is_some());
        assert!(POLICY.pause(ErrorKind::Transient, after(2), None, 0.0).is_none());
        assert!(POLICY.pause(ErrorKind::Timeout, after(2), None, 0.0).is_none());
        assert!(POLICY.pause(ErrorKind::RateLimit, after(500), None, 0.0).is_some());
        let late = RetryProgress { spent: Duration::from_secs(595), ..after(3) };
        assert!(POLICY.pause(ErrorKind::RateLimit, late, None, 1.0).is_none());
    }

    #[test]
    fn a_bound_on_all_retries_holds_for_throttles_too() {
        let policy = RetryPolicy { max_retries: Some(0), ..POLICY };
        assert!(policy.pause(ErrorKind::RateLimit, after(0), None, 0.0).is_none());
    }

    #[test]
    fn what_will_not_change_is_final() {
        for kind in [ErrorKind::Auth, ErrorKind::Quota, ErrorKind::InvalidRequest] {
            assert!(POLICY.pause(kind, after(0), None, 0.0).is_none());
        }
    }
}
