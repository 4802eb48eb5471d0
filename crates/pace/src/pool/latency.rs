//! The latency of a pool's answers, and how long a request may take before it counts as stalled.

use std::collections::VecDeque;
use std::time::Duration;

/// Answers that the statistics cover, and the minimum number for a time limit.
const MAX_ANSWERS: usize = 100;
const MIN_ANSWERS: usize = 10;
/// Minimum of [`Pool::stall_timeout`](crate::Pool::stall_timeout), unless little time is left for a call. Long
/// answers are rare in some suites, and cancelled requests are paid for.
pub const MIN_STALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit as a multiple of the slowest recent answer.
const SLOWEST_FACTOR: f64 = 4.0;
/// Time limit in standard deviations of the logarithm above its mean.
const DEVIATIONS: f64 = 6.0;

/// Latencies of recent answers.
#[derive(Debug, Default)]
pub(super) struct AnswerLatencies {
    /// In seconds, the oldest first.
    recent: VecDeque<f64>,
}

impl AnswerLatencies {
    pub(super) fn add(&mut self, latency: Duration) {
        if self.recent.len() == MAX_ANSWERS {
            self.recent.pop_front();
        }
        self.recent.push_back(latency.as_secs_f64().max(1e-3));
    }

    /// Returns the time after which a request without an answer has probably stalled; `None` while
    /// there are too few answers. It is generous where latencies vary. Within a time of `left`, it
    /// leaves time for a second request if latencies allow it.
    pub(super) fn stall_timeout(&self, left: Duration) -> Option<Duration> {
        if self.recent.len() < MIN_ANSWERS {
            return None;
        }
        let count = self.recent.len() as f64;
        let mean = self.recent.iter().map(|latency| latency.ln()).sum::<f64>() / count;
        let squares = self.recent.iter().map(|latency| (latency.ln() - mean).powi(2)).sum::<f64>();
        let by_spread = (mean + DEVIATIONS * (squares / count).sqrt()).exp();
        let slowest = self.recent.iter().copied().fold(0.0, f64::max);
        let seconds = by_spread.max(SLOWEST_FACTOR * slowest);
        let timeout = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Some(timeout.max(MIN_STALL_TIMEOUT.min(left / 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(latencies: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut answers = AnswerLatencies::default();
        latencies.into_iter().for_each(|latency| answers.add(Duration::from_secs_f64(latency)));
        answers.stall_timeout(Duration::MAX).map(|timeout| timeout.as_secs_f64())
    }

    #[test]
    fn few_answers_give_no_time_limit() {
        assert_eq!(timeout([1.0; MIN_ANSWERS - 1]), None);
        assert_eq!(timeout([1.0; MIN_ANSWERS]), Some(15.0));
    }

    #[test]
    fn time_limit_follows_the_slowest_answer_and_the_spread() {
        let slow = timeout([14.0; 20]).unwrap();
        assert!((slow - 56.0).abs() < 1e-6, "{slow}");
        let uneven = timeout((0..20).map(|n| if n % 2 == 0 { 2.0 } else { 18.0 })).unwrap();
        // The logarithm has the mean of 6 s and a standard deviation of ln 3.
        assert!((uneven - 6.0 * 729.0).abs() < 1.0, "{uneven}");
    }

    #[test]
    fn little_time_lowers_the_minimum() {
        let mut answers = AnswerLatencies::default();
        (0..20).for_each(|_| answers.add(Duration::from_secs(1)));
        let timeout = |left| answers.stall_timeout(Duration::from_secs(left)).unwrap();
        assert_eq!(timeout(20), Duration::from_secs(10));
        assert_eq!(timeout(4), Duration::from_secs(4), "four times the slowest answer");
    }

    #[test]
    fn old_answers_are_forgotten() {
        let latencies = std::iter::once(500.0).chain([1.0; MAX_ANSWERS]);
        assert_eq!(timeout(latencies), Some(15.0));
    }
}
