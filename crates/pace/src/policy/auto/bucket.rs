//! The hypothesis that requests are limited per time.
//!
//! We send at a pace along a cubic, counted in admissions since the last rejection: a little below
//! the rate, slowly up to it, flat there, and then faster and faster until the next rejection. A
//! bucket that holds several requests evens this out; of one that holds a single request it
//! wastes little.

use super::marks::{Estimate, RateMarks};

/// Admissions until the pace is at the rate, when that is hardly known and when it is well known.
const PLATEAU: (f64, f64) = (4.0, 16.0);
/// What a small bucket has not used is lost, so there it is longer: most requests and seconds.
const SHARP_PLATEAU: (f64, f64) = (32.0, 2.0);
/// How far below the rate the pace starts, times the plateau's length.
const PACE_DEPTH: f64 = 0.3;
/// Plateaus without a rejection after which the rate must have risen.
const HEADROOM: f64 = 2.5;
/// How the pace grows then, step by step.
const GROWTH_STEPS: [f64; 5] = [1.15, 1.2, 1.3, 1.5, 2.0];
/// Whoever waits for so many times the usual is not min_burst back by the pace.
const IDLE_FACTOR: f64 = 5.0;
/// A bucket that let in fewer at the start loses what is not used at once.
const SMALL_BURST: f64 = 1.8;
/// Shorter blocks cost nothing, and so do longer ones in which no more than that is lost.
const SHORT_BLOCK_S: f64 = 0.5;
const MAX_LOSS: f64 = 1.0;

#[derive(Debug)]
pub(super) struct BucketHypothesis {
    rate: f64,
    shape: BucketShape,
    /// How many requests the rate was measured by.
    measured_by: f64,
    /// Admissions since the last rejection.
    admissions: f64,
    plateau: f64,
    /// By how much the pace has grown since it is clear that the rate has risen.
    growth: f64,
    growth_steps: usize,
    grown_at: f64,
    balance: f64,
    refilled_at: f64,
    sent_at: f64,
    /// What had been accepted before the last rejected request.
    accepted: f64,
    /// The rate before the present silence.
    known_rate: f64,
}

/// What a rejection says about the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BucketShape {
    /// The bucket keeps what is not used at once: what was accepted between two rejections is what
    /// was refilled.
    Deep,
    /// It does not: only the pace at which requests bounce tells the rate.
    Sharp,
    /// Whatever it does, a rejection costs so much that we stay well below the rate.
    Costly,
}

/// A rejection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rejection {
    pub(super) start: InitialBurst,
    /// Seconds for which nothing may go out because of it.
    pub(super) block: f64,
    /// What had been accepted before it was sent.
    pub(super) accepted: f64,
    /// What was accepted since the last block, in so many seconds.
    pub(super) since_block: f64,
    pub(super) seconds: f64,
    /// The least that was accepted at once after a rest.
    pub(super) min_burst: f64,
}

impl Rejection {
    /// What the block costs at that rate: refill beyond what the bucket holds.
    fn lost(self, rate: f64) -> f64 {
        if self.block > SHORT_BLOCK_S { (self.block * rate - self.min_burst).max(0.0) } else { 0.0 }
    }
}

/// What went through before the first rejection.
#[derive(Debug, Clone, Copy)]
pub(super) struct InitialBurst {
    pub(super) accepted: f64,
    pub(super) seconds: f64,
}

impl InitialBurst {
    /// How much the provider let in at once, if that is the rate.
    pub(super) fn burst(self, rate: f64) -> f64 {
        self.accepted - rate * self.seconds
    }
}

impl BucketHypothesis {
    pub(super) fn new(now: f64, rate: f64) -> BucketHypothesis {
        BucketHypothesis {
            rate,
            shape: BucketShape::Deep,
            measured_by: 0.0,
            admissions: 0.0,
            plateau: PLATEAU.0,
            growth: 1.0,
            growth_steps: 0,
            grown_at: now,
            balance: 0.0,
            refilled_at: now,
            sent_at: now,
            accepted: -1.0,
            known_rate: rate,
        }
    }

    /// A rate that an earlier run has found.
    pub(super) fn known(rate: f64) -> BucketHypothesis {
        BucketHypothesis {
            plateau: PLATEAU.1,
            measured_by: PLATEAU.1,
            ..BucketHypothesis::new(0.0, rate)
        }
    }

    /// Whether the rate rests on more than a few requests.
    pub(super) fn is_confident(&self) -> bool {
        self.measured_by >= 10.0
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn known_rate(&self) -> f64 {
        self.known_rate
    }

    pub(super) fn pace(&self) -> f64 {
        let along = (self.admissions / self.plateau).min(HEADROOM) - 1.0;
        let slope = if self.shape == BucketShape::Deep && along > 0.0 { 1.0 } else { PACE_DEPTH };
        self.rate * (1.0 + slope / self.plateau * along.powi(3)) * self.growth
    }

    /// How many may go out at once.
    fn depth(&self) -> f64 {
        // What holds one request takes no two in a row, however long the wait before.
        if self.shape == BucketShape::Deep { (0.05 * self.rate).max(1.2) } else { 1.0 }
    }

    fn refill(&mut self, now: f64) {
        let gained = (now - self.refilled_at) * self.pace();
        self.balance = (self.balance + gained).min(self.depth());
        self.refilled_at = now;
    }

    /// When the next request may go out.
    pub(super) fn next_at(&mut self, now: f64) -> f64 {
        self.refill(now);
        let missing = 1.0 - self.balance;
        if missing > 1e-9 { now + missing / self.pace() } else { now }
    }

    pub(super) fn on_sent(&mut self, now: f64) {
        self.refill(now);
        if (now - self.sent_at) * self.pace() > IDLE_FACTOR {
            // Something else min_burst us back: that nothing bounced says nothing about the pace.
            self.admissions = self.admissions.min(self.plateau);
        }
        self.sent_at = now;
        self.balance -= 1.0;
    }

    pub(super) fn on_admitted(&mut self, now: f64, patience: f64) {
        self.refill(now);
        self.admissions += 1.0;
        let interval = (2.0 * patience).max(1.5 / self.pace()).max(0.6);
        if self.admissions <= HEADROOM * self.plateau || now - self.grown_at <= interval {
            return;
        }
        self.growth *= GROWTH_STEPS[self.growth_steps.min(GROWTH_STEPS.len() - 1)];
        self.growth_steps += 1;
        self.grown_at = now;
    }

    /// A request bounced; it is in the marks already.
    pub(super) fn on_rejected(&mut self, now: f64, marks: &mut RateMarks, bounce: Rejection) {
        let pace = self.pace();
        let is_silent = bounce.accepted < self.accepted + 0.5;
        self.accepted = bounce.accepted;
        if !is_silent {
            self.known_rate = self.rate;
        }
        if bounce.lost(self.rate) > MAX_LOSS {
            self.shape = BucketShape::Costly;
        } else if self.shape == BucketShape::Deep && bounce.start.burst(self.rate) < SMALL_BURST {
            self.shape = BucketShape::Sharp;
        }
        if self.shape == BucketShape::Costly {
            self.stay_below(pace, bounce);
        } else if let Some(estimate) = marks.estimate() {
            self.learn(pace, estimate);
            if self.has_risen() {
                marks.forget();
            }
        }
        self.refill(now);
        self.balance = 0.0;
        self.admissions = 0.0;
        self.growth = 1.0;
        self.growth_steps = 0;
        self.grown_at = now;
    }

    /// Whether there was no rejection for so long that the rate must have risen.
    fn has_risen(&self) -> bool {
        self.growth_steps > 1
    }

    /// A rejection at that pace has cost more than one was worth.
    fn stay_below(&mut self, pace: f64, bounce: Rejection) {
        // What was let in since the last block, but for what the bucket min_burst, was refilled.
        let refilled = (bounce.since_block - bounce.min_burst) / bounce.seconds.max(0.1);
        self.rate = refilled.clamp(0.65 * pace, 0.95 * pace);
        let lost = bounce.lost(self.rate);
        self.plateau = (10.0 * lost).clamp(20.0, 2000.0);
        if lost <= MAX_LOSS {
            self.shape = BucketShape::Deep;
        }
    }

    /// Draws conclusions from a rejection at that pace.
    fn learn(&mut self, pace: f64, estimate: Estimate) {
        let longest = match self.shape {
            BucketShape::Deep => PLATEAU.1,
            _ => SHARP_PLATEAU.0.max(SHARP_PLATEAU.1 * self.rate),
        };
        self.plateau = estimate.count.clamp(PLATEAU.0, longest);
        self.measured_by = if self.has_risen() { PLATEAU.1 } else { estimate.count };
        let step = GROWTH_STEPS[self.growth_steps.saturating_sub(1).min(GROWTH_STEPS.len() - 1)];
        self.rate = match self.shape {
            BucketShape::Sharp if self.has_risen() => pace / step.sqrt(),
            BucketShape::Sharp if self.admissions >= 12.0 => 0.994 * pace,
            BucketShape::Sharp if self.admissions >= 4.0 => 0.98 * pace,
            BucketShape::Sharp if self.admissions > 0.0 => 0.95 * self.rate,
            // What was measured is partly from before, and the last pace was too fast.
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

    /// A rejection by a bucket that let in twenty at the start.
    fn bounce(accepted: f64) -> Rejection {
        let start = InitialBurst { accepted: 20.0, seconds: 0.0 };
        Rejection {
            start,
            block: 0.0,
            accepted,
            since_block: accepted,
            seconds: 1.0,
            min_burst: 20.0,
        }
    }

    fn admit(bucket: &mut BucketHypothesis, count: u32) {
        (0..count).for_each(|_| bucket.on_admitted(0.0, 0.1));
    }

    /// RateMarks of a bucket with a rate of a little more than four.
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
    fn the_pace_is_below_the_rate_after_a_rejection_and_at_it_after_a_plateau() {
        let mut bucket = BucketHypothesis::new(0.0, 10.0);
        assert_pace(&bucket, 10.0 * (1.0 - 0.3 / 4.0));
        assert!((bucket.next_at(0.0) - 1.0 / 9.25).abs() < 1e-9);
        admit(&mut bucket, 4);
        assert_pace(&bucket, 10.0);
        admit(&mut bucket, 4);
        assert_pace(&bucket, 10.0 * (1.0 + 1.0 / 4.0));
        bucket.on_rejected(0.0, &mut RateMarks::default(), bounce(8.0));
        assert_pace(&bucket, 9.25);
    }

    #[test]
    fn without_a_rejection_for_long_it_grows_step_by_step() {
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
    fn that_nothing_bounced_while_nothing_went_out_says_nothing() {
        let mut bucket = BucketHypothesis::new(0.0, 10.0);
        admit(&mut bucket, 8);
        bucket.on_sent(0.1);
        assert_pace(&bucket, 12.5);
        bucket.on_sent(1.0);
        assert_pace(&bucket, 10.0);
    }

    #[test]
    fn a_deep_one_has_the_rate_that_was_measured() {
        let (mut bucket, mut marks) = (BucketHypothesis::new(0.0, 7.0), marks());
        assert!(!bucket.is_confident());
        bucket.on_rejected(10.1, &mut marks, bounce(60.0));
        assert_eq!(bucket.rate(), marks.estimate().unwrap().rate);
        assert!(bucket.is_confident());
    }

    #[test]
    fn once_it_has_grown_the_last_pace_counts_as_well() {
        let (mut bucket, mut marks) = (BucketHypothesis::new(0.0, 4.0), marks());
        let measured = marks.estimate().unwrap().rate;
        admit(&mut bucket, 10);
        bucket.on_admitted(1.0, 0.1);
        bucket.on_admitted(2.0, 0.1);
        let pace = bucket.pace();
        bucket.on_rejected(10.1, &mut marks, bounce(60.0));
        let expected = (measured * pace / 1.5).sqrt();
        assert!((bucket.rate() - expected).abs() < 1e-9, "{} for {expected}", bucket.rate());
        assert_eq!(marks.estimate(), None, "what was measured before is forgotten");
    }

    #[test]
    fn of_one_that_let_in_one_at_the_start_the_pace_tells_the_rate() {
        let bounce = |accepted: f64| Rejection {
            start: InitialBurst { accepted: 1.0, seconds: 0.0 },
            ..bounce(accepted)
        };
        let mut bucket = BucketHypothesis::new(0.0, 5.0);
        admit(&mut bucket, 4);
        bucket.on_rejected(0.0, &mut marks(), bounce(5.0));
        assert!((bucket.rate() - 0.98 * 5.0).abs() < 1e-9, "{}", bucket.rate());
        admit(&mut bucket, 12);
        let pace = bucket.pace();
        bucket.on_rejected(0.0, &mut marks(), bounce(17.0));
        assert!((bucket.rate() - 0.994 * pace).abs() < 1e-9, "{}", bucket.rate());
        // However long nobody asked, there are no two in a row.
        assert_eq!(bucket.next_at(100.0), 100.0);
        bucket.on_sent(100.0);
        assert!((bucket.next_at(100.0) - 100.0 - 1.0 / bucket.pace()).abs() < 1e-9);
    }

    #[test]
    fn a_long_block_makes_it_stay_well_below_the_pace() {
        let costly = |accepted: f64| Rejection { block: 10.0, min_burst: 5.0, ..bounce(accepted) };
        let mut bucket = BucketHypothesis::new(0.0, 2.0);
        admit(&mut bucket, 4);
        // Of the twenty that are refilled meanwhile five are kept.
        bucket.on_rejected(0.0, &mut marks(), costly(4.0));
        assert!((bucket.rate() - 0.65 * 2.0).abs() < 1e-9, "{}", bucket.rate());
        // Of thirteen still eight are lost.
        assert_pace(&bucket, 1.3 * (1.0 - 0.3 / 80.0));
        // More than three times what it holds went through: that was close.
        admit(&mut bucket, 16);
        let pace = bucket.pace();
        bucket.on_rejected(0.0, &mut marks(), costly(20.0));
        assert!((bucket.rate() - 0.95 * pace).abs() < 1e-9, "{}", bucket.rate());
    }

    #[test]
    fn rejections_with_nothing_let_in_between_leave_the_rate_before_them_known() {
        let mut bucket = BucketHypothesis::new(0.0, 7.0);
        let mut marks = marks();
        bucket.on_rejected(10.1, &mut marks, bounce(60.0));
        assert_eq!(bucket.known_rate(), 7.0);
        marks.add(30.0, 60.0);
        bucket.on_rejected(30.1, &mut marks, bounce(60.0));
        assert!(bucket.rate() < 2.0, "{}", bucket.rate());
        assert_eq!(bucket.known_rate(), 7.0);
    }
}
