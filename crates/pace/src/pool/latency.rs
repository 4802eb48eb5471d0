//! How long a request may take before it counts as stalled, by the latency of a pool's answers and its timeouts.

use std::collections::VecDeque;
use std::time::Duration;

/// Answers that the statistics cover, and the number below which the time limit is longer.
const MAX_ANSWERS: usize = 100;
const FEW_ANSWERS: usize = 10;
/// Minimum of [`Pool::stall_timeout`](crate::Pool::stall_timeout), unless little time is left for a call. Long
/// answers are rare in some suites, and cancelled requests are paid for.
pub const MIN_STALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit as a multiple of the slowest recent answer.
const SLOWEST_FACTOR: f64 = 4.0;
/// Time limit in standard deviations of the logarithm above its mean.
const DEVIATIONS: f64 = 6.0;

/// Factor of the time limit after each timeout of a call that chance does not explain.
const LIMIT_FACTOR: u32 = 3;
/// Share of repeated timeouts from which on the calls are slow, rather than the connections stalled.
const MAX_STALL_SHARE: f64 = 0.5;
/// Expected number of calls with a number of timeouts, from which on chance explains that number.
const MIN_EXPECTED_CALLS: f64 = 0.5;

/// Latencies of recent answers, and timeouts.
#[derive(Debug, Default)]
pub(super) struct AnswerLatencies {
    /// In seconds, the oldest first.
    recent: VecDeque<f64>,
    timeouts: TimeoutCounts,
}

impl AnswerLatencies {
    /// Adds an answer of a call that had timed out before that many times.
    pub(super) fn add(&mut self, latency: Duration, timeouts: u32) {
        self.timeouts.answered += u32::from(timeouts > 0);
        if self.recent.len() == MAX_ANSWERS {
            self.recent.pop_front();
        }
        self.recent.push_back(latency.as_secs_f64().max(1e-3));
    }

    /// Adds a timeout of a call that had timed out before that many times.
    pub(super) fn add_timeout(&mut self, timeouts: u32) {
        let count =
            if timeouts == 0 { &mut self.timeouts.calls } else { &mut self.timeouts.repeated };
        *count += 1;
    }

    /// Returns the number of calls that timed out.
    pub(super) fn timeouts(&self) -> u32 {
        self.timeouts.calls
    }

    /// Returns the time after which a request without an answer has probably stalled; `None` while
    /// there are no answers. It is generous after few answers, where latencies vary, and for calls that
    /// timed out too often for stalls by chance: they may just be slow. Within a time of `left`, it leaves time
    /// for a second request if latencies allow it.
    pub(super) fn stall_timeout(&self, left: Duration, timeouts: u32) -> Option<Duration> {
        if self.recent.is_empty() {
            return None;
        }
        let count = self.recent.len() as f64;
        let mean = self.recent.iter().map(|latency| latency.ln()).sum::<f64>() / count;
        let squares = self.recent.iter().map(|latency| (latency.ln() - mean).powi(2)).sum::<f64>();
        let by_spread = (mean + DEVIATIONS * (squares / count).sqrt()).exp();
        let slowest = self.recent.iter().copied().fold(0.0, f64::max);
        let seconds = by_spread.max(SLOWEST_FACTOR * slowest);
        // A few answers say little about slow ones.
        let caution = (FEW_ANSWERS as f64 / count).max(1.0);
        let generous = caution * seconds.max(MIN_STALL_TIMEOUT.as_secs_f64());
        let seconds = generous.min(seconds.max(left.as_secs_f64() / 2.0));
        let timeout = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let increases = timeouts.saturating_sub(self.timeouts.max_by_chance());
        let factor = LIMIT_FACTOR.saturating_pow(increases);
        Some(timeout.saturating_mul(factor))
    }
}

/// Numbers that tell stalls, which happen to any request, from slow calls, which time out again.
#[derive(Debug, Default)]
struct TimeoutCounts {
    /// Calls that timed out.
    calls: u32,
    /// Requests after a timeout that were answered, and that timed out again.
    answered: u32,
    repeated: u32,
}

impl TimeoutCounts {
    /// Returns how often some of the calls can be expected to time out if only chance decides.
    fn max_by_chance(&self) -> u32 {
        let share = f64::from(self.repeated + 1) / f64::from(self.answered + self.repeated + 2);
        if share >= MAX_STALL_SHARE {
            return 1;
        }
        // Each timeout repeats with this share: calls × share^n calls have n more.
        let more = (f64::from(self.calls) / MIN_EXPECTED_CALLS).ln() / -share.ln();
        // The cast saturates.
        1 + more as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(latencies: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut answers = AnswerLatencies::default();
        latencies.into_iter().for_each(|latency| answers.add(Duration::from_secs_f64(latency), 0));
        answers.stall_timeout(Duration::MAX, 0).map(|timeout| timeout.as_secs_f64())
    }

    #[test]
    fn few_answers_give_a_longer_time_limit() {
        assert_eq!(timeout([]), None);
        assert_eq!(timeout([1.0]), Some(150.0));
        assert_eq!(timeout([1.0; FEW_ANSWERS / 2]), Some(30.0));
        assert_eq!(timeout([1.0; FEW_ANSWERS]), Some(15.0));
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
        (0..20).for_each(|_| answers.add(Duration::from_secs(1), 0));
        let timeout = |left| answers.stall_timeout(Duration::from_secs(left), 0).unwrap();
        assert_eq!(timeout(20), Duration::from_secs(10));
        assert_eq!(timeout(4), Duration::from_secs(4), "four times the slowest answer");
    }

    #[test]
    fn old_answers_are_forgotten() {
        let latencies = std::iter::once(500.0).chain([1.0; MAX_ANSWERS]);
        assert_eq!(timeout(latencies), Some(15.0));
    }

    /// Returns the time limit after a number of timeouts, if `answered` of 100 requests after a timeout
    /// were answered.
    fn limit_after(timeouts: u32, answered: u32) -> u64 {
        let mut answers = AnswerLatencies::default();
        (0..20).for_each(|_| answers.add(Duration::from_secs(1), 0));
        (0..100).for_each(|_| answers.add_timeout(0));
        (0..answered).for_each(|_| answers.add(Duration::from_secs(1), 1));
        (answered..100).for_each(|_| answers.add_timeout(1));
        answers.stall_timeout(Duration::MAX, timeouts).unwrap().as_secs()
    }

    #[test]
    fn calls_that_time_out_again_get_more_time() {
        assert_eq!([0, 1, 2, 3].map(|timeouts| limit_after(timeouts, 0)), [15, 15, 45, 135]);
        assert_eq!(limit_after(2, 40), 45);
    }

    #[test]
    fn stalls_by_chance_do_not_raise_the_limit() {
        // Of 100 calls with a timeout, 18 have a second one, 3 a third one, and 0.5 a fourth one.
        assert_eq!([1, 2, 4, 5].map(|timeouts| limit_after(timeouts, 83)), [15, 15, 15, 45]);
        assert_eq!([2, 3].map(|timeouts| limit_after(timeouts, 99)), [15, 45]);
    }
}
