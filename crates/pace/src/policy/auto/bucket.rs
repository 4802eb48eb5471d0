//! The hypothesis that requests are limited per time.
//!
//! We send at a pace along a cubic, counted in admissions since the last rejection: a little below
//! the rate, slowly up to it, flat there, and then faster and faster until the next rejection. A
//! bucket that holds several requests evens this out; of one that holds a single request it
//! wastes little.

use super::marks::Marks;

/// Admissions until the pace is at the rate, when that is hardly known and when it is well known.
const PLATEAU: (f64, f64) = (5.0, 20.0);
const PLATEAU_S: f64 = 2.0;
/// How far below the rate the pace starts, times the plateau's length.
const DEPTH: f64 = 0.3;
/// Plateaus without a rejection after which the rate must have risen.
const HEADROOM: f64 = 2.5;
/// How the pace grows then, step by step.
const GROWTH: [f64; 5] = [1.15, 1.2, 1.3, 1.5, 2.0];
/// A bucket that let in fewer at the start loses what is not used at once.
const SMALL: f64 = 2.5;
/// After rejections without an admission between them: how many requests are refilled before the
/// next one, which share of the time since the first of them passes, and which share of it
/// however long it is.
const DRY_WAIT: f64 = 1.5;
const DRY_SHARE: f64 = 0.9;
const LONG_WAIT: (f64, f64) = (10.0, 0.25);
/// Shorter blocks cost nothing, and so do longer ones in which no more than that is lost.
const SHORT_BLOCK: f64 = 0.5;
const LOSS: f64 = 1.0;

#[derive(Debug)]
pub(super) struct Bucket {
    rate: f64,
    shape: Shape,
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
    /// More than the usual may go out at once: what a silence has left over.
    credit: f64,
    not_before: f64,
    /// Since when nothing was let in.
    dry_since: f64,
    bounced_at: f64,
    /// What had been accepted before the last rejected request.
    accepted: f64,
    /// The rate before the present silence.
    known_rate: f64,
}

/// What a rejection says about the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
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
pub(super) struct Bounce {
    pub(super) start: Start,
    /// Seconds for which nothing may go out because of it.
    pub(super) block: f64,
    /// Seconds between the rejected request and the one before.
    pub(super) gap: f64,
    /// What had been accepted before it was sent.
    pub(super) accepted: f64,
    /// The least that was accepted at once after a rest.
    pub(super) held: f64,
}

impl Bounce {
    /// What the block costs at that rate: refill beyond what the bucket holds.
    fn lost(self, rate: f64) -> f64 {
        if self.block > SHORT_BLOCK { (self.block * rate - self.held).max(0.0) } else { 0.0 }
    }
}

/// What went through before the first rejection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) accepted: f64,
    pub(super) seconds: f64,
}

impl Bucket {
    pub(super) fn new(now: f64, rate: f64) -> Bucket {
        Bucket {
            rate,
            shape: Shape::Deep,
            measured_by: 0.0,
            admissions: 0.0,
            plateau: PLATEAU.0,
            growth: 1.0,
            growth_steps: 0,
            grown_at: now,
            balance: 0.0,
            refilled_at: now,
            credit: 0.0,
            not_before: now,
            dry_since: now,
            bounced_at: now,
            accepted: -1.0,
            known_rate: rate,
        }
    }

    /// A rate that an earlier run has found.
    pub(super) fn known(rate: f64) -> Bucket {
        Bucket { plateau: PLATEAU.1, measured_by: PLATEAU.1, ..Bucket::new(0.0, rate) }
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
        let slope = if self.shape == Shape::Deep && along > 0.0 { 1.0 } else { DEPTH };
        self.rate * (1.0 + slope / self.plateau * along.powi(3)) * self.growth
    }

    fn refill(&mut self, now: f64) {
        // What holds one request takes no two in a row, however long the wait before.
        let usual = if self.shape == Shape::Deep { (0.05 * self.rate).max(1.2) } else { 1.0 };
        let gained = (now - self.refilled_at) * self.pace();
        self.balance = (self.balance + gained).min(usual + self.credit);
        self.refilled_at = now;
    }

    /// When the next request may go out.
    pub(super) fn next_at(&mut self, now: f64) -> f64 {
        self.refill(now);
        let missing = 1.0 - self.balance;
        let at = if missing > 1e-9 { now + missing / self.pace() } else { now };
        at.max(self.not_before)
    }

    pub(super) fn sent(&mut self, now: f64) {
        self.refill(now);
        self.balance -= 1.0;
        self.credit = (self.credit - 1.0).max(0.0);
    }

    pub(super) fn admitted(&mut self, now: f64, patience: f64) {
        self.refill(now);
        self.admissions += 1.0;
        let interval = (2.0 * patience).max(1.5 / self.pace()).max(0.6);
        if self.admissions <= HEADROOM * self.plateau || now - self.grown_at <= interval {
            return;
        }
        self.growth *= GROWTH[self.growth_steps.min(GROWTH.len() - 1)];
        self.growth_steps += 1;
        self.grown_at = now;
    }

    /// What a silence of so many seconds has left in the bucket, at most `most`.
    pub(super) fn rested(&mut self, seconds: f64, most: f64) {
        if self.shape == Shape::Deep {
            self.credit = (0.97 * self.rate * seconds).min(0.9 * most - 1.0).max(0.0);
            self.balance = self.balance.max(self.credit);
        }
    }

    /// A request bounced; it is in the marks already.
    pub(super) fn bounced(&mut self, now: f64, marks: &mut Marks, bounce: Bounce) {
        // The time since the one before is what counts, not what it was meant to be.
        let pace = (1.0 / bounce.gap.max(1e-6)).clamp(0.9 * self.pace(), 1.5 * self.pace());
        let is_dry = bounce.accepted < self.accepted + 0.5;
        self.accepted = bounce.accepted;
        if !is_dry {
            self.known_rate = self.rate;
            self.dry_since = now;
        }
        self.choose_shape(bounce);
        if let Some((rate, count)) = marks.estimate() {
            self.learn(now, pace, rate, count, marks, bounce);
        }
        self.refill(now);
        self.balance = match self.shape {
            Shape::Sharp => self.balance.min(0.6),
            _ => 0.0,
        };
        if is_dry {
            let dry = now - self.dry_since;
            let wait = (DRY_WAIT / self.rate).max(DRY_SHARE * dry);
            self.not_before = now + wait.min(LONG_WAIT.0.max(LONG_WAIT.1 * dry));
        }
        self.bounced_at = now;
        self.admissions = 0.0;
        self.growth = 1.0;
        self.growth_steps = 0;
        self.grown_at = now;
        self.credit = 0.0;
    }

    fn is_small(&self, start: Start) -> bool {
        start.accepted - self.rate * start.seconds < SMALL
    }

    fn choose_shape(&mut self, bounce: Bounce) {
        if bounce.lost(self.rate) > LOSS {
            self.shape = Shape::Costly;
        } else if self.shape == Shape::Deep && self.is_small(bounce.start) {
            self.shape = Shape::Sharp;
        }
    }

    /// Draws conclusions from a rejection at that pace; `measured` rests on `count` requests.
    fn learn(
        &mut self,
        now: f64,
        pace: f64,
        measured: f64,
        count: f64,
        marks: &mut Marks,
        bounce: Bounce,
    ) {
        if self.shape == Shape::Costly {
            // A bucket of that depth hides for so long that the pace is too fast.
            let hidden = (3.0 * bounce.held).max(12.0);
            let is_close = self.growth_steps == 0 && self.admissions > hidden;
            self.rate = if is_close { 0.95 } else { 0.65 } * pace;
            let lost = bounce.lost(self.rate);
            self.plateau = (10.0 * lost).clamp(20.0, 2000.0);
            if lost <= LOSS {
                self.shape = Shape::Deep;
            }
            return;
        }
        let most = if self.shape == Shape::Deep {
            PLATEAU.1
        } else {
            PLATEAU.1.max(PLATEAU_S * self.rate)
        };
        self.plateau = count.clamp(PLATEAU.0, most);
        let unexplained = self.admissions
            - (1.0 + 1.0 / self.measured_by.max(1.0)) * self.rate * (now - self.bounced_at);
        let is_explained = self.shape == Shape::Deep
            && unexplained
                < (bounce.start.accepted - self.rate * bounce.start.seconds).max(1.0) + 1.0;
        self.measured_by = count;
        if self.growth_steps > 1 {
            // The rate has risen, and what was measured before says nothing.
            let step = GROWTH[(self.growth_steps - 1).min(GROWTH.len() - 1)];
            self.rate = match self.shape {
                Shape::Sharp => pace / step.sqrt(),
                _ if is_explained => measured.max((measured * pace / step.max(1.5)).sqrt()),
                _ => measured.max(pace / step.max(1.5)),
            };
            self.measured_by = PLATEAU.1;
            marks.forget();
            return;
        }
        self.rate = match self.shape {
            Shape::Sharp if self.admissions >= 12.0 => 0.994 * pace,
            Shape::Sharp if self.admissions >= 4.0 => 0.98 * pace,
            Shape::Sharp if self.admissions > 0.0 => 0.95 * self.rate,
            _ => measured,
        };
    }
}
