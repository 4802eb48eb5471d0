//! Trials of a faster pace under the hypothesis of a bucket.
//!
//! Random rejections look like those of a slow bucket, and each of them lowers the estimated rate. Their
//! sign is that requests are rejected even below the estimated rate. After several of these, a number
//! of requests is sent at a multiple of the rate: a bucket rejects a large share of them.

/// Pace of a trial as a multiple of the rate.
pub(super) const TRIAL_FACTOR: f64 = 1.5;
/// Actual pace, as a multiple of the rate, below which a trial shows nothing.
const MIN_TRIAL_FACTOR: f64 = 1.2;
/// Number of requests, and the share of rejections that a bucket of the estimated rate exceeds.
const TRIAL_SIZE: u32 = 12;
const MAX_REJECTED_SHARE: f64 = 0.2;
/// Rejections below the rate before the first trial; each failed one multiplies them.
const FIRST_INTERVAL: f64 = 2.0;
const INTERVAL_FACTOR: f64 = 2.0;
/// Weight of a rejection if the rate is not below this share of its maximum: uneven costs of requests
/// cause early rejections too, but do not lower the rate again and again.
const STEADY_WEIGHT: f64 = 0.7;
const FALLEN_SHARE: f64 = 0.85;

/// The trials of one bucket.
#[derive(Debug)]
pub(super) struct PaceTrials {
    /// Rejections below the rate until the next trial, and until the one after it.
    until_next: f64,
    interval: f64,
    /// The highest rate since the last failed trial.
    max_rate: f64,
    current: Option<PaceTrial>,
}

#[derive(Debug, Clone, Copy)]
struct PaceTrial {
    /// The rate that it is a trial of.
    rate: f64,
    /// Number and time of the first request; `None` before it was sent.
    first: Option<(u64, f64)>,
    /// Time of the latest request.
    last_at: f64,
    sent: u32,
    admitted: u32,
    rejected: u32,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialResult {
    /// The outcome of some requests is not known, or the requests were not sent at the pace of the trial.
    Undecided,
    /// The provider admits the faster pace.
    Faster,
    /// The estimated rate is a limit.
    Limited,
}

impl PaceTrials {
    pub(super) fn new() -> PaceTrials {
        PaceTrials {
            until_next: FIRST_INTERVAL,
            interval: FIRST_INTERVAL,
            max_rate: 0.0,
            current: None,
        }
    }

    /// Returns whether the next request belongs to a trial.
    pub(super) fn is_sending(&self) -> bool {
        self.current.is_some_and(|trial| trial.sent < TRIAL_SIZE)
    }

    /// Handles a rejection below the rate, after which a trial may start.
    pub(super) fn on_early_rejection(&mut self, rate: f64) {
        if self.current.is_some() {
            return;
        }
        self.max_rate = self.max_rate.max(rate);
        let has_fallen = rate < FALLEN_SHARE * self.max_rate;
        self.until_next -= if has_fallen { 1.0 } else { STEADY_WEIGHT };
        if self.until_next <= 0.0 {
            self.start(rate);
        }
    }

    fn start(&mut self, rate: f64) {
        let trial =
            PaceTrial { rate, first: None, last_at: 0.0, sent: 0, admitted: 0, rejected: 0 };
        self.current = Some(trial);
    }

    pub(super) fn on_sent(&mut self, now: f64, number: u64) {
        if let Some(trial) = &mut self.current
            && trial.sent < TRIAL_SIZE
        {
            trial.first.get_or_insert((number, now));
            trial.last_at = now;
            trial.sent += 1;
        }
    }

    /// Handles a request without an outcome, which ends its trial.
    pub(super) fn on_discarded(&mut self, number: u64) {
        if self.current.is_some_and(|trial| trial.contains(number)) {
            self.current = None;
        }
    }

    /// Handles the outcome of a request; returns `None` if it does not belong to a trial.
    pub(super) fn on_decided(&mut self, number: u64, is_rejected: bool) -> Option<TrialResult> {
        let trial = self.current.as_mut().filter(|trial| trial.contains(number))?;
        *(if is_rejected { &mut trial.rejected } else { &mut trial.admitted }) += 1;
        let result = if f64::from(trial.rejected) > MAX_REJECTED_SHARE * f64::from(TRIAL_SIZE) {
            self.current = None;
            self.max_rate = 0.0;
            self.interval *= INTERVAL_FACTOR;
            self.until_next = self.interval;
            TrialResult::Limited
        } else if trial.admitted + trial.rejected < TRIAL_SIZE {
            TrialResult::Undecided
        } else if trial.is_paced() {
            // Even faster may be possible.
            let rate = TRIAL_FACTOR * trial.rate;
            self.start(rate);
            TrialResult::Faster
        } else {
            // Something else limited the rate.
            self.current = None;
            self.until_next = self.interval;
            TrialResult::Undecided
        };
        Some(result)
    }
}

impl PaceTrial {
    fn contains(&self, number: u64) -> bool {
        self.first.is_some_and(|(first, _)| (first..first + u64::from(self.sent)).contains(&number))
    }

    /// Returns whether the requests were sent clearly faster than the rate.
    fn is_paced(&self) -> bool {
        let (intervals, (_, first_at)) = (self.sent - 1, self.first.unwrap_or_default());
        f64::from(intervals) >= MIN_TRIAL_FACTOR * self.rate * (self.last_at - first_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns trials of which one has just been sent within a time, as the requests from 100 on.
    fn running(seconds: f64) -> PaceTrials {
        let mut trials = PaceTrials::new();
        trials.on_early_rejection(10.0);
        trials.on_early_rejection(8.0);
        assert!(!trials.is_sending(), "a rejection at the highest rate counts less");
        trials.on_early_rejection(8.0);
        (100..112).for_each(|number| {
            assert!(trials.is_sending());
            trials.on_sent(seconds * (number - 100) as f64 / 11.0, number);
        });
        assert!(!trials.is_sending());
        trials
    }

    #[test]
    fn few_rejections_allow_a_faster_pace() {
        let mut trials = running(1.0);
        assert_eq!(trials.on_decided(99, false), None);
        assert_eq!(trials.on_decided(112, true), None);
        for number in 100..111 {
            assert_eq!(trials.on_decided(number, number < 102), Some(TrialResult::Undecided));
        }
        assert_eq!(trials.on_decided(111, false), Some(TrialResult::Faster));
        assert!(trials.is_sending(), "the next trial is faster still");
    }

    #[test]
    fn many_rejections_end_the_trial_and_delay_the_next() {
        let mut trials = running(1.0);
        assert_eq!(trials.on_decided(100, true), Some(TrialResult::Undecided));
        assert_eq!(trials.on_decided(101, true), Some(TrialResult::Undecided));
        assert_eq!(trials.on_decided(102, true), Some(TrialResult::Limited));
        assert_eq!(trials.on_decided(103, false), None);
        trials.on_early_rejection(10.0);
        (0..3).for_each(|_| trials.on_early_rejection(8.0));
        assert!(!trials.is_sending());
        trials.on_early_rejection(8.0);
        assert!(trials.is_sending());
    }

    #[test]
    fn trial_that_was_not_faster_shows_nothing() {
        // Eleven intervals at 1.2 times the rate of 8 take 1.15 s.
        let result = |seconds: f64| {
            let mut trials = running(seconds);
            (100..112).filter_map(|number| trials.on_decided(number, false)).last()
        };
        assert_eq!(result(1.1), Some(TrialResult::Faster));
        assert_eq!(result(1.2), Some(TrialResult::Undecided));
    }

    #[test]
    fn request_without_outcome_ends_its_trial() {
        let mut trials = running(1.0);
        trials.on_discarded(99);
        assert_eq!(trials.on_decided(100, false), Some(TrialResult::Undecided));
        trials.on_discarded(105);
        assert_eq!(trials.on_decided(101, false), None);
    }
}
