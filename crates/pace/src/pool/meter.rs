//! Counters of a pool.

use crate::SendOutcome;
use std::time::Duration;

/// Window over which the answer rate is measured.
const RATE_WINDOW_S: u64 = 10;

/// Assumed length of a completion before the first one.
const DEFAULT_OUTPUT: f64 = 200.0;

/// Weight of the newest completion in the mean length.
const NEWEST_WEIGHT: f64 = 1.0 / 16.0;

#[derive(Debug)]
pub(super) struct Meter {
    pub(super) answered: u64,
    pub(super) rejected: u64,
    pub(super) failed: u64,
    /// Time of the first rejection or failure after the last answer.
    pub(super) failing_since: Option<Duration>,
    /// Whether the provider has responded to any request.
    pub(super) has_responded: bool,
    /// Answers in each of the last seconds, indexed by the second modulo the number of buckets.
    buckets: [u32; RATE_WINDOW_S as usize],
    /// The newest second in the buckets.
    second: u64,
    mean_output: f64,
    has_output: bool,
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            answered: 0,
            rejected: 0,
            failed: 0,
            failing_since: None,
            has_responded: false,
            buckets: [0; RATE_WINDOW_S as usize],
            second: 0,
            mean_output: DEFAULT_OUTPUT,
            has_output: false,
        }
    }
}

impl Meter {
    /// Counts the outcome of a request. Overload responses count as rejections or failures.
    pub(super) fn count(&mut self, now: Duration, outcome: &SendOutcome, is_rejected: bool) {
        match outcome {
            SendOutcome::Answered { .. } | SendOutcome::Refused => self.failing_since = None,
            SendOutcome::Rejected { .. }
            | SendOutcome::Overloaded { .. }
            | SendOutcome::Failed { .. } => {
                self.failing_since.get_or_insert(now);
            }
            SendOutcome::Dropped => {}
        }
        self.has_responded |= match outcome {
            SendOutcome::Answered { .. } | SendOutcome::Rejected { .. } | SendOutcome::Refused => {
                true
            }
            SendOutcome::Overloaded { .. } | SendOutcome::Failed { .. } | SendOutcome::Dropped => {
                false
            }
        };
        match outcome {
            SendOutcome::Answered { usage, .. } => {
                self.answered += 1;
                self.advance(now);
                if let Some(bucket) = self.buckets.get_mut((self.second % RATE_WINDOW_S) as usize) {
                    *bucket = bucket.saturating_add(1);
                }
                if let Some(usage) = usage {
                    let share = if self.has_output { NEWEST_WEIGHT } else { 1.0 };
                    self.mean_output += (usage.output as f64 - self.mean_output) * share;
                    self.has_output = true;
                }
            }
            SendOutcome::Rejected { .. } => self.rejected += 1,
            SendOutcome::Overloaded { .. } if is_rejected => self.rejected += 1,
            SendOutcome::Overloaded { .. } | SendOutcome::Failed { .. } => self.failed += 1,
            SendOutcome::Refused | SendOutcome::Dropped => {}
        }
    }

    fn advance(&mut self, now: Duration) {
        let second = now.as_secs();
        if second.saturating_sub(self.second) >= RATE_WINDOW_S {
            self.buckets = [0; RATE_WINDOW_S as usize];
        } else {
            for passed in self.second + 1..=second {
                if let Some(bucket) = self.buckets.get_mut((passed % RATE_WINDOW_S) as usize) {
                    *bucket = 0;
                }
            }
        }
        self.second = self.second.max(second);
    }

    /// Returns the recent answers per second.
    pub(super) fn answers_per_second(&self, now: Duration) -> f64 {
        let oldest = now.as_secs().saturating_sub(RATE_WINDOW_S - 1);
        let counted: u32 = (oldest..=self.second)
            .filter_map(|second| self.buckets.get((second % RATE_WINDOW_S) as usize))
            .sum();
        // The newest second is not over.
        let seconds = now.as_secs_f64() - oldest as f64;
        f64::from(counted) / seconds.max(1.0)
    }

    /// Returns the mean length of completions in tokens.
    pub(super) fn mean_output(&self) -> u64 {
        self.mean_output.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Quota, TokenCost};

    fn answer(output: u64) -> SendOutcome {
        let usage = Some(TokenCost { input: 1, output });
        SendOutcome::Answered { quota: Quota::default(), usage, clean: true }
    }

    #[test]
    fn rate_covers_the_last_ten_seconds() {
        let mut meter = Meter::default();
        let at = |seconds: f64| Duration::from_secs_f64(seconds);
        assert_eq!(meter.answers_per_second(at(0.0)), 0.0);
        for tenth in 0..1000 {
            meter.count(at(f64::from(tenth) / 10.0), &answer(1), false);
        }
        let rate = meter.answers_per_second(at(99.95));
        assert!((9.9..10.2).contains(&rate), "{rate}");
        assert_eq!(meter.answers_per_second(at(109.5)), 0.0);
        assert_eq!(meter.answers_per_second(at(5000.0)), 0.0);
        meter.count(at(5000.0), &answer(1), false);
        assert!((meter.answers_per_second(at(5000.0)) - 1.0 / 9.0).abs() < 1e-9);
    }

    #[test]
    fn mean_output_follows_completions() {
        let mut meter = Meter::default();
        assert_eq!(meter.mean_output(), 200);
        meter.count(Duration::ZERO, &answer(40), false);
        assert_eq!(meter.mean_output(), 40);
        for _ in 0..100 {
            meter.count(Duration::ZERO, &answer(1000), false);
        }
        assert!((990..=1000).contains(&meter.mean_output()));
    }
}
