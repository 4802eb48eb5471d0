//! The hypothesis of a bucket: requests are limited per time.
//!
//! The pace follows a cubic in the number of admissions since the last rejection: it starts slightly
//! below the rate, approaches it slowly, stays flat there (the plateau), and then accelerates until the
//! next rejection. A bucket that holds several requests evens this out; one that holds a single request
//! loses little.

use super::marks::{Estimate, RateMarks};
use super::overload::OverloadGuard;
use super::pace_trial::{PaceTrials, TRIAL_FACTOR, TrialResult};

/// Admissions until the pace reaches the rate, if the rate is poorly known and if it is well known.
const PLATEAU: (f64, f64) = (4.0, 20.0);
/// Maximum plateau of a small bucket, in requests and in seconds. It is longer, because unused
/// capacity of a small bucket is lost.
const SHARP_PLATEAU: (f64, f64) = (32.0, 2.0);
/// Initial gap between pace and rate, times the length of the plateau.
const PACE_DEPTH: f64 = 0.3;
/// Number of plateaus without a rejection after which the rate must have risen.
const HEADROOM: f64 = 2.5;
/// Growth factors of the pace from then on.
const GROWTH_STEPS: [f64; 5] = [1.15, 1.2, 1.3, 1.5, 2.0];
/// Growth factor of the pace while the rate is a guess.
const GUESS_GROWTH: f64 = 1.3;
/// Share of the pace that must be reached for that growth, and the seconds after which it is measured anew.
const MIN_REACHED: f64 = 0.25;
const MAX_UNREACHED_S: f64 = 5.0;
/// Factor on the pace for each rejection in a row: the provider accepts nothing for a while.
const SILENCE_FACTOR: f64 = 0.8;
/// A gap between requests above this multiple of the interval was not caused by the pace.
const IDLE_FACTOR: f64 = 5.0;
/// A bucket with a smaller initial burst loses unused capacity.
const SMALL_BURST: f64 = 1.8;
/// Blocks up to this length cost nothing, and neither do longer ones that lose at most `MAX_LOSS`.
const SHORT_BLOCK_S: f64 = 0.5;
const MAX_LOSS: f64 = 1.0;

/// The estimated bucket and the position on the cubic.
#[derive(Debug)]
pub(super) struct BucketHypothesis {
    rate: f64,
    shape: BucketShape,
    /// Number of requests that the rate is based on.
    sample_size: f64,
    /// Admissions since the last rejection.
    admissions: f64,
    plateau: f64,
    /// Growth of the pace since the rate has evidently risen.
    growth: f64,
    growth_steps: usize,
    /// When it last grew, and the admissions since then.
    grown_at: f64,
    admitted_since: f64,
    balance: f64,
    refilled_at: f64,
    sent_at: f64,
    /// Requests accepted before the last rejected one.
    accepted: f64,
    /// The rate before the current silence, and the rejections in a row since it began.
    known_rate: f64,
    silence: i32,
    trials: PaceTrials,
    guard: OverloadGuard,
    /// Whether the rate is that of an earlier run, and nothing was rejected since.
    is_remembered: bool,
    /// Whether the rate is a guess: the pace grows quickly until the first rejection.
    is_guess: bool,
}

/// How a rejection relates to the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BucketShape {
    /// The bucket keeps unused capacity: the requests accepted between two rejections equal the
    /// refill.
    Deep,
    /// The bucket loses unused capacity: only the pace at which requests are rejected gives the rate.
    Sharp,
    /// A rejection is so expensive that the pace stays well below the rate.
    Costly,
}

/// A rejection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rejection {
    pub(super) start: InitialBurst,
    /// Seconds in which nothing may be sent because of it.
    pub(super) block: f64,
    /// Requests accepted before it was sent.
    pub(super) accepted: f64,
    /// Requests accepted since the last block, and the seconds since then.
    pub(super) since_block: f64,
    pub(super) seconds: f64,
    /// Smallest number of requests accepted after a block before the next rejection.
    pub(super) min_burst: f64,
    /// Whether few recent requests were rejected.
    pub(super) is_rare: bool,
}

impl Rejection {
    /// Returns the loss caused by the block at that rate: the refill that the bucket cannot hold.
    fn lost(self, rate: f64) -> f64 {
        if self.block > SHORT_BLOCK_S { (self.block * rate - self.min_burst).max(0.0) } else { 0.0 }
    }
}

/// The requests accepted before the first rejection.
#[derive(Debug, Clone, Copy)]
pub(super) struct InitialBurst {
    pub(super) accepted: f64,
    pub(super) seconds: f64,
}

impl InitialBurst {
    /// Returns the size of the burst at that rate.
    pub(super) fn burst(self, rate: f64) -> f64 {
        self.accepted - rate * self.seconds
    }
}

impl BucketHypothesis {
    pub(super) fn new(now: f64, rate: f64) -> BucketHypothesis {
        BucketHypothesis {
            rate,
            shape: BucketShape::Deep,
            sample_size: 0.0,
            admissions: 0.0,
            plateau: PLATEAU.0,
            growth: 1.0,
            growth_steps: 0,
            grown_at: now,
            admitted_since: 0.0,
            balance: 0.0,
            refilled_at: now,
            sent_at: now,
            accepted: -1.0,
            known_rate: rate,
            silence: 0,
            trials: PaceTrials::new(),
            guard: OverloadGuard::new(now),
            is_remembered: false,
            is_guess: false,
        }
    }

    /// Creates a bucket whose rate is at least the given one, and possibly much higher.
    /// `accepted` is the number of requests accepted so far.
    pub(super) fn at_least(now: f64, rate: f64, accepted: f64) -> BucketHypothesis {
        BucketHypothesis { is_guess: true, accepted, ..BucketHypothesis::new(now, rate) }
    }

    /// Creates a bucket with a rate that an earlier run learned.
    pub(super) fn known(rate: f64) -> BucketHypothesis {
        let bucket = BucketHypothesis::new(0.0, rate);
        BucketHypothesis { plateau: PLATEAU.1, is_remembered: true, ..bucket }
    }

    /// Returns whether nothing contradicts the rate of an earlier run yet.
    pub(super) fn is_remembered(&self) -> bool {
        self.is_remembered
    }

    /// Returns whether the pace grows, because there was no rejection for long.
    pub(super) fn is_growing(&self) -> bool {
        self.growth_steps > 0
    }

    /// Returns whether the rate is based on enough requests of this run.
    pub(super) fn is_confident(&self) -> bool {
        self.sample_size >= 10.0
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn known_rate(&self) -> f64 {
        self.known_rate
    }

    /// Returns the current pace.
    pub(super) fn pace(&self) -> f64 {
        if self.trials.is_sending() {
            return TRIAL_FACTOR * self.rate;
        }
        self.cubic_pace() * SILENCE_FACTOR.powi(self.silence)
    }

    /// Returns the pace while requests are accepted.
    fn cubic_pace(&self) -> f64 {
        let along = (self.admissions / self.plateau).min(HEADROOM) - 1.0;
        let slope = if self.shape == BucketShape::Deep && along > 0.0 { 1.0 } else { PACE_DEPTH };
        self.rate * (1.0 + slope / self.plateau * along.powi(3)) * self.growth
    }

    /// Returns the number of requests that may be sent at once.
    fn depth(&self) -> f64 {
        // A bucket that holds one request never admits two in a row.
        if self.shape == BucketShape::Deep { (0.05 * self.rate).max(1.2) } else { 1.0 }
    }

    fn refill(&mut self, now: f64) {
        let gained = (now - self.refilled_at) * self.pace();
        self.balance = (self.balance + gained).min(self.depth());
        self.refilled_at = now;
    }

    /// Returns when the next request may be sent.
    pub(super) fn next_at(&mut self, now: f64) -> f64 {
        self.refill(now);
        let missing = 1.0 - self.balance;
        if missing > 1e-9 { now + missing / self.pace() } else { now }
    }

    pub(super) fn on_sent(&mut self, now: f64) {
        self.refill(now);
        if (now - self.sent_at) * self.pace() > IDLE_FACTOR {
            // Something else limited the rate, so the lack of rejections says nothing about the pace.
            self.admissions = self.admissions.min(self.plateau);
        }
        self.sent_at = now;
        self.balance -= 1.0;
    }

    pub(super) fn on_admitted(&mut self, now: f64, patience: f64) {
        self.refill(now);
        self.silence = 0;
        self.admissions += 1.0;
        self.admitted_since += 1.0;
        if self.is_guess {
            let seconds = now - self.grown_at;
            let is_reached = self.admitted_since >= MIN_REACHED * self.pace() * seconds;
            if is_reached && seconds > patience.max(1.0 / self.pace()) {
                self.grow(now, GUESS_GROWTH);
            } else if seconds > MAX_UNREACHED_S {
                // Something else limits the rate.
                self.restart_measurement(now);
            }
            return;
        }
        let interval = (2.0 * patience).max(1.5 / self.pace()).max(0.6);
        if self.admissions <= HEADROOM * self.plateau || now - self.grown_at <= interval {
            return;
        }
        self.grow(now, GROWTH_STEPS[self.growth_steps.min(GROWTH_STEPS.len() - 1)]);
    }

    fn grow(&mut self, now: f64, factor: f64) {
        self.growth *= factor;
        self.growth_steps += 1;
        self.restart_measurement(now);
    }

    /// Measures the admissions per second from now on.
    fn restart_measurement(&mut self, now: f64) {
        self.grown_at = now;
        self.admitted_since = 0.0;
    }

    /// Handles a request that may belong to a trial of a faster pace.
    pub(super) fn on_trial_sent(&mut self, now: f64, number: u64) {
        self.trials.on_sent(now, number);
    }

    /// Handles a request that was neither admitted nor rejected.
    pub(super) fn on_discarded(&mut self, number: u64) {
        self.trials.on_discarded(number);
    }

    /// Handles an outcome; returns the result of the trial to which the request belongs.
    pub(super) fn on_decided(
        &mut self,
        now: f64,
        number: u64,
        is_rejected: bool,
        marks: &mut RateMarks,
    ) -> Option<TrialResult> {
        if let Some(rate) = self.guard.on_decided(now, is_rejected)
            && rate < self.rate
        {
            self.refill(now);
            self.rate = rate;
            self.restart_growth(now);
            marks.keep_newest();
        }
        let result = self.trials.on_decided(number, is_rejected);
        if result == Some(TrialResult::Faster) {
            self.rate *= TRIAL_FACTOR;
            self.known_rate = self.rate;
            marks.keep_newest();
        }
        result
    }

    fn restart_growth(&mut self, now: f64) {
        self.admissions = 0.0;
        self.growth = 1.0;
        self.growth_steps = 0;
        self.restart_measurement(now);
    }

    /// Returns whether a request was rejected although the pace was below the rate.
    fn is_early(&self, rejection: &Rejection) -> bool {
        let is_silent = rejection.accepted < self.accepted + 0.5;
        !is_silent
            && rejection.is_rare
            && rejection.block <= SHORT_BLOCK_S
            && self.admissions <= self.plateau
    }

    /// Returns to an earlier rate if the current one is lower.
    pub(super) fn restore(&mut self, now: f64, rate: f64) {
        self.refill(now);
        self.rate = self.rate.max(rate);
        self.known_rate = self.rate;
        self.guard = OverloadGuard::new(now);
        self.restart_growth(now);
    }

    /// Handles a rejection, which the marks already contain.
    pub(super) fn on_rejected(&mut self, now: f64, marks: &mut RateMarks, rejection: Rejection) {
        let pace = self.cubic_pace();
        let is_silent = rejection.accepted < self.accepted + 0.5;
        if self.is_early(&rejection) {
            self.trials.on_early_rejection(self.rate);
        }
        self.accepted = rejection.accepted;
        // An estimate from few requests falls by itself.
        let is_old = marks.estimate().is_some_and(|estimate| estimate.count >= PLATEAU.0);
        let is_kept = is_old || self.shape == BucketShape::Costly;
        self.silence = if is_silent && is_kept { self.silence + 1 } else { 0 };
        if !is_silent {
            self.known_rate = self.rate;
        }
        if rejection.lost(self.rate) > MAX_LOSS {
            self.shape = BucketShape::Costly;
        } else if self.shape == BucketShape::Deep && rejection.start.burst(self.rate) < SMALL_BURST
        {
            self.shape = BucketShape::Sharp;
        }
        if self.shape == BucketShape::Costly {
            if !is_silent {
                self.stay_below(pace, rejection);
            }
        } else if let Some(estimate) = marks.estimate() {
            self.learn(pace, estimate);
            if self.has_risen() {
                marks.keep_newest();
            }
        }
        self.is_remembered = false;
        // A silence says nothing about the rate.
        self.is_guess &= is_silent;
        self.refill(now);
        self.balance = 0.0;
        self.restart_growth(now);
    }

    /// Returns whether the rate must have risen, because there was no rejection for long.
    fn has_risen(&self) -> bool {
        self.growth_steps > 1
    }

    /// Lowers the rate after an expensive rejection at that pace.
    fn stay_below(&mut self, pace: f64, rejection: Rejection) {
        // The requests accepted since the last block, minus the burst, equal the refill.
        let refilled = (rejection.since_block - rejection.min_burst) / rejection.seconds.max(0.1);
        self.rate = refilled.clamp(0.65 * pace, 0.95 * pace);
        let lost = rejection.lost(self.rate);
        self.plateau = (10.0 * lost).clamp(20.0, 2000.0);
        if lost <= MAX_LOSS {
            self.shape = BucketShape::Deep;
        }
    }

    /// Updates the rate after a rejection at that pace.
    fn learn(&mut self, pace: f64, estimate: Estimate) {
        let max_plateau = match self.shape {
            BucketShape::Deep => PLATEAU.1,
            _ => SHARP_PLATEAU.0.max(SHARP_PLATEAU.1 * self.rate),
        };
        self.plateau = estimate.count.clamp(PLATEAU.0, max_plateau);
        self.sample_size = if self.has_risen() { PLATEAU.1 } else { estimate.count };
        let step = GROWTH_STEPS[self.growth_steps.saturating_sub(1).min(GROWTH_STEPS.len() - 1)];
        self.rate = match self.shape {
            BucketShape::Sharp if self.has_risen() => pace / step.sqrt(),
            BucketShape::Sharp if self.admissions >= 12.0 => 0.994 * pace,
            BucketShape::Sharp if self.admissions >= 4.0 => 0.98 * pace,
            BucketShape::Sharp if self.admissions > 0.0 => 0.95 * self.rate,
            // The measurement includes the time before the rise, and the last pace was too fast.
            BucketShape::Deep if self.has_risen() => {
                estimate.rate.max((estimate.rate * pace / step.max(1.5)).sqrt())
            }
            _ => estimate.rate,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a rejection by a bucket with an initial burst of twenty.
    fn rejection(accepted: f64) -> Rejection {
        let start = InitialBurst { accepted: 20.0, seconds: 0.0 };
        Rejection {
            start,
            block: 0.0,
            accepted,
            since_block: accepted,
            seconds: 1.0,
            min_burst: 20.0,
            is_rare: true,
        }
    }

    fn admit(bucket: &mut BucketHypothesis, count: u32) {
        (0..count).for_each(|_| bucket.on_admitted(0.0, 0.1));
    }

    /// Returns the marks of a bucket with a rate slightly above four.
    fn marks() -> RateMarks {
        let mut marks = RateMarks::default();
        marks.add(0.0, 20.0);
        marks.add(10.0, 60.0);
        marks
    }

    #[track_caller]
    fn assert_pace(bucket: &BucketHypothesis, expected: f64) {
        assert!((bucket.pace() - expected).abs() < 1e-9, "{} for {expected}", bucket.pace());
    }

    #[test]
    fn pace_starts_below_the_rate_and_reaches_it_after_a_plateau() {
        let mut bucket = BucketHypothesis::new(0.0, 10.0);
        assert_pace(&bucket, 10.0 * (1.0 - 0.3 / 4.0));
        assert!((bucket.next_at(0.0) - 1.0 / 9.25).abs() < 1e-9);
        admit(&mut bucket, 4);
        assert_pace(&bucket, 10.0);
        admit(&mut bucket, 4);
        assert_pace(&bucket, 10.0 * (1.0 + 1.0 / 4.0));
        bucket.on_rejected(0.0, &mut RateMarks::default(), rejection(8.0));
        assert_pace(&bucket, 9.25);
    }

    #[test]
    fn pace_grows_stepwise_without_rejections() {
        let mut bucket = BucketHypothesis::new(0.0, 10.0);
        admit(&mut bucket, 10);
        let steepest = 10.0 * (1.0 + 1.5 * 1.5 * 1.5 / 4.0);
        assert_pace(&bucket, steepest);
        bucket.on_admitted(1.0, 0.1);
        assert_pace(&bucket, 1.15 * steepest);
        bucket.on_admitted(1.5, 0.1);
        assert_pace(&bucket, 1.15 * steepest);
        bucket.on_admitted(1.7, 0.1);
        assert_pace(&bucket, 1.15 * 1.2 * steepest);
    }

    #[test]
    fn idle_time_does_not_raise_the_pace() {
        let mut bucket = BucketHypothesis::new(0.0, 10.0);
        admit(&mut bucket, 8);
        bucket.on_sent(0.1);
        assert_pace(&bucket, 12.5);
        bucket.on_sent(1.0);
        assert_pace(&bucket, 10.0);
    }

    #[test]
    fn deep_bucket_uses_the_measured_rate() {
        let (mut bucket, mut marks) = (BucketHypothesis::new(0.0, 7.0), marks());
        assert!(!bucket.is_confident());
        bucket.on_rejected(10.1, &mut marks, rejection(60.0));
        assert_eq!(bucket.rate(), marks.estimate().unwrap().rate);
        assert!(bucket.is_confident());
    }

    #[test]
    fn grown_pace_contributes_to_the_rate() {
        let (mut bucket, mut marks) = (BucketHypothesis::new(0.0, 4.0), marks());
        let measured = marks.estimate().unwrap().rate;
        admit(&mut bucket, 10);
        bucket.on_admitted(1.0, 0.1);
        bucket.on_admitted(2.0, 0.1);
        let pace = bucket.pace();
        bucket.on_rejected(10.1, &mut marks, rejection(60.0));
        let expected = (measured * pace / 1.5).sqrt();
        assert!((bucket.rate() - expected).abs() < 1e-9, "{} for {expected}", bucket.rate());
        assert_eq!(marks.estimate(), None, "earlier measurements are removed");
    }

    #[test]
    fn sharp_bucket_takes_the_rate_from_the_pace() {
        let rejection = |accepted: f64| Rejection {
            start: InitialBurst { accepted: 1.0, seconds: 0.0 },
            ..rejection(accepted)
        };
        let mut bucket = BucketHypothesis::new(0.0, 5.0);
        admit(&mut bucket, 4);
        bucket.on_rejected(0.0, &mut marks(), rejection(5.0));
        assert!((bucket.rate() - 0.98 * 5.0).abs() < 1e-9, "{}", bucket.rate());
        admit(&mut bucket, 12);
        let pace = bucket.pace();
        bucket.on_rejected(0.0, &mut marks(), rejection(17.0));
        assert!((bucket.rate() - 0.994 * pace).abs() < 1e-9, "{}", bucket.rate());
        // Even after a long pause, two requests are not sent in a row.
        assert_eq!(bucket.next_at(100.0), 100.0);
        bucket.on_sent(100.0);
        assert!((bucket.next_at(100.0) - 100.0 - 1.0 / bucket.pace()).abs() < 1e-9);
    }

    #[test]
    fn long_block_lowers_the_pace() {
        let costly =
            |accepted: f64| Rejection { block: 10.0, min_burst: 5.0, ..rejection(accepted) };
        let mut bucket = BucketHypothesis::new(0.0, 2.0);
        admit(&mut bucket, 4);
        // Of the twenty refilled meanwhile, the bucket holds five.
        bucket.on_rejected(0.0, &mut marks(), costly(4.0));
        assert!((bucket.rate() - 0.65 * 2.0).abs() < 1e-9, "{}", bucket.rate());
        // Of thirteen, eight are lost.
        assert_pace(&bucket, 1.3 * (1.0 - 0.3 / 80.0));
        // More than three times the burst was accepted: the pace was close to the rate.
        admit(&mut bucket, 16);
        let pace = bucket.pace();
        bucket.on_rejected(0.0, &mut marks(), costly(20.0));
        assert!((bucket.rate() - 0.95 * pace).abs() < 1e-9, "{}", bucket.rate());
    }

    #[test]
    fn known_rate_survives_rejections_without_admissions() {
        let mut bucket = BucketHypothesis::new(0.0, 7.0);
        let mut marks = marks();
        bucket.on_rejected(10.1, &mut marks, rejection(60.0));
        assert_eq!(bucket.known_rate(), 7.0);
        marks.add(30.0, 60.0);
        bucket.on_rejected(30.1, &mut marks, rejection(60.0));
        assert!(bucket.rate() < 2.0, "{}", bucket.rate());
        assert_eq!(bucket.known_rate(), 7.0);
    }

    #[test]
    fn guessed_rate_grows_quickly_until_a_rejection() {
        let mut bucket = BucketHypothesis::at_least(0.0, 1.0, 20.0);
        let start = bucket.pace();
        (1..=4).for_each(|second| bucket.on_admitted(f64::from(second), 0.1));
        assert!(bucket.pace() > start * GUESS_GROWTH.powi(2), "{}", bucket.pace());
        // Admissions far below the pace do not raise it.
        let growth = bucket.growth;
        (1..=20).for_each(|number| bucket.on_admitted(20.0 * f64::from(number), 0.1));
        assert_eq!(bucket.growth, growth);
        // Nothing was accepted since the guess: the provider is silent.
        bucket.on_rejected(5.0, &mut marks(), rejection(20.0));
        assert!(bucket.is_guess);
        bucket.on_rejected(6.0, &mut marks(), rejection(24.0));
        assert!(!bucket.is_guess);
    }

    #[test]
    fn overload_lowers_the_rate_to_the_measured_one() {
        let (mut bucket, mut marks) = (BucketHypothesis::new(0.0, 100.0), marks());
        for number in 0..40 {
            bucket.on_decided(4.0, number, number >= 20, &mut marks);
        }
        assert_eq!(bucket.rate(), 5.0);
        assert_eq!(marks.estimate(), None, "the marks are about a higher rate");
    }

    #[test]
    fn trial_after_early_rejections_raises_the_rate() {
        let (mut bucket, mut marks) = (BucketHypothesis::new(0.0, 10.0), marks());
        let early = rejection(30.0);
        assert!(bucket.is_early(&early));
        assert!(!bucket.is_early(&Rejection { is_rare: false, ..early }));
        assert!(!bucket.is_early(&Rejection { block: 2.0, ..early }));
        (0..8).for_each(|number| {
            bucket.on_rejected(1.0, &mut RateMarks::default(), rejection(30.0 + f64::from(number)));
        });
        assert_eq!(bucket.pace(), TRIAL_FACTOR * 10.0);
        (0..12).for_each(|number| bucket.on_trial_sent(0.0, number));
        assert!(bucket.pace() <= 10.0);
        let results = (0..12).map(|number| bucket.on_decided(2.0, number, false, &mut marks));
        assert_eq!(results.last(), Some(Some(TrialResult::Faster)));
        assert_eq!(bucket.rate(), TRIAL_FACTOR * 10.0);
        admit(&mut bucket, 30);
        assert!(!bucket.is_early(&rejection(90.0)), "the pace was above the rate");
    }

    #[test]
    fn pace_falls_while_nothing_is_accepted() {
        let (mut bucket, mut marks) = (BucketHypothesis::new(0.0, 4.0), marks());
        bucket.on_rejected(10.0, &mut marks, rejection(60.0));
        let pace = bucket.pace();
        bucket.on_rejected(10.3, &mut marks, rejection(60.0));
        bucket.on_rejected(10.6, &mut marks, rejection(60.0));
        assert_pace(&bucket, pace * SILENCE_FACTOR.powi(2));
        bucket.on_admitted(11.0, 0.1);
        assert!(bucket.pace() >= pace, "{}", bucket.pace());
        // Blocks of a closed window do not lower the rate either.
        let costly = Rejection { block: 10.0, min_burst: 5.0, ..rejection(90.0) };
        bucket.on_rejected(12.0, &mut marks, costly);
        let rate = bucket.rate();
        bucket.on_rejected(22.0, &mut marks, costly);
        assert_eq!(bucket.rate(), rate);
    }
}
