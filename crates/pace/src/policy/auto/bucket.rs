//! The hypothesis that requests are limited per time.
//!
//! We send at a pace along a cubic, counted in admissions since the last rejection: a little below
//! the rate, slowly up to it, flat there, and then faster and faster until the next rejection. A
//! bucket that holds several requests evens this out; of one that holds a single request it
//! wastes little.

use super::marks::{Estimate, Marks};

/// Admissions until the pace is at the rate, when that is hardly known and when it is well known.
const PLATEAU: (f64, f64) = (5.0, 20.0);
/// How far below the rate the pace starts, times the plateau's length.
const DEPTH: f64 = 0.3;
/// Plateaus without a rejection after which the rate must have risen.
const HEADROOM: f64 = 2.5;
/// How the pace grows then, step by step.
const GROWTH: [f64; 6] = [1.1, 1.15, 1.2, 1.3, 1.5, 2.0];
/// Where a rejection costs a long block: how fast to begin, as a multiple of what one block's time
/// would allow for, and for how many times the first burst each pace is held until the rate is
/// found.
const CAREFUL_START: f64 = 6.0;
const CAREFUL_HOLD: f64 = 2.0;
/// How many requests are refilled before the next one after two rejections in a row.
const DRY_WAIT: f64 = 1.5;
/// A block of so many seconds costs more than a rejection is worth.
const LONG_BLOCK: f64 = 5.0;
/// Longest silence after rejections without an admission between them.
const LONGEST_WAIT: f64 = 5.0;

#[derive(Debug)]
pub(super) struct Bucket {
    rate: f64,
    /// Admissions since the last rejection.
    admissions: f64,
    /// By how much the pace has grown since it is clear that the rate has risen.
    growth: f64,
    growth_steps: usize,
    plateau: f64,
    grown_at: f64,
    balance: f64,
    refilled_at: f64,
    /// What the next request takes.
    wanted: f64,
    /// More than the usual may go out at once: what a silence has left over.
    credit: f64,
    /// How much of what a silence should have left over there really was.
    credit_share: f64,
    not_before: f64,
    last_admitted: f64,
    first_dry: Option<f64>,
    /// What had been accepted before the last rejected request.
    accepted: f64,
    shape: Shape,
    /// The rate rests on more than the last few requests.
    is_confident: bool,
    bounces: u32,
    /// The rate before the present silence.
    known_rate: f64,
}

/// A rejection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounce {
    pub(super) start: Start,
    /// Seconds for which nothing may go out because of it.
    pub(super) block: f64,
    /// Nothing was sent after the rejected request.
    pub(super) is_last: bool,
    /// Seconds between the rejected request and the one before.
    pub(super) gap: f64,
    /// How long a rejection may take.
    pub(super) patience: f64,
    /// What had been accepted before it was sent.
    pub(super) accepted: f64,
    /// Seconds since the last block, and what was accepted in them.
    pub(super) after_rest: Option<(f64, f64)>,
}

impl Bounce {
    /// What the block costs: refill beyond what the bucket holds. Without a known rate it is what
    /// went through after the last block in addition to a full bucket.
    fn lost(self, rate: Option<f64>) -> f64 {
        let start = self.start;
        let seen = self.after_rest.map_or(0.0, |(seconds, accepted)| {
            (accepted - start.accepted - 1.0) / seconds.max(0.1)
        });
        (self.block * rate.unwrap_or(seen) - start.accepted).max(0.0)
    }
}

/// Rejections between two trials.
const TRIAL_EVERY: u32 = 8;

/// What the bucket does with capacity that is not used at once.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// It keeps it, so what was accepted between two rejections is what was refilled.
    Deep { next_trial: u32 },
    /// Finding out, by going as fast as at the last rejection.
    Trial { rate: f64, since: f64 },
    /// It is lost, so only the pace at which requests bounce tells the rate.
    Sharp { misses: u32 },
    /// Whatever it does, a rejection costs more: the rate is looked for from below.
    Careful { is_found: bool },
    /// It is lost when the short window ends; this is its rate.
    Short { rate: f64, misses: u32 },
}

/// What went through before the first rejection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) accepted: f64,
    pub(super) seconds: f64,
}

impl Bucket {
    /// `accepted` is how many have been let in so far, for when there is no other measure.
    pub(super) fn new(now: f64, marks: &mut Marks, accepted: f64) -> Bucket {
        let since_first = marks.since_first(now, accepted);
        let rate = marks.estimate().map_or(since_first, |estimate| estimate.rate);
        Bucket::with_rate(now, rate, false)
    }

    /// A rate that an earlier run has found.
    pub(super) fn known(rate: f64) -> Bucket {
        Bucket { plateau: PLATEAU.1, is_confident: true, ..Bucket::with_rate(0.0, rate, false) }
    }

    /// Windows too short to be used one by one: so many requests in each of that length.
    pub(super) fn of_windows(now: f64, count: f64, length: f64) -> Bucket {
        let rate = 0.98 * count / length;
        let shape = Shape::Short { rate, misses: 0 };
        Bucket { plateau: PLATEAU.1.max(2.0 * count), shape, ..Bucket::with_rate(now, rate, false) }
    }

    pub(super) fn with_rate(now: f64, rate: f64, is_small: bool) -> Bucket {
        Bucket {
            rate,
            admissions: 0.0,
            growth: 1.0,
            growth_steps: 0,
            plateau: PLATEAU.0,
            grown_at: now,
            balance: 0.0,
            refilled_at: now,
            wanted: 1.0,
            credit: 0.0,
            credit_share: 1.0,
            not_before: now,
            last_admitted: now,
            first_dry: None,
            shape: if is_small {
                Shape::Sharp { misses: 0 }
            } else {
                Shape::Deep { next_trial: 3 }
            },
            accepted: -1.0,
            bounces: 0,
            is_confident: false,
            known_rate: rate,
        }
    }

    /// Whether the rate rests on more than a few requests.
    pub(super) fn is_confident(&self) -> bool {
        self.is_confident
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn pace(&self) -> f64 {
        let along = (self.admissions / self.plateau).min(HEADROOM) - 1.0;
        let slope = match self.shape {
            Shape::Deep { .. } | Shape::Trial { .. } if along > 0.0 => 1.0,
            _ => DEPTH,
        };
        self.rate * (1.0 + slope / self.plateau * along.powi(3)) * self.growth
    }

    pub(super) fn known_rate(&self) -> f64 {
        self.known_rate
    }

    fn refill(&mut self, now: f64) {
        let gained = (now - self.refilled_at) * self.pace();
        // What holds one request takes no two in a row, however long the wait before.
        let usual = match self.shape {
            Shape::Sharp { .. } | Shape::Careful { .. } => 1.0,
            _ => (0.05 * self.rate).max(1.2),
        };
        let depth = usual.max(self.wanted) + self.credit;
        self.balance = (self.balance + gained).min(depth);
        self.refilled_at = now;
    }

    /// When the next request may go out.
    pub(super) fn next_at(&mut self, now: f64, weight: f64) -> f64 {
        self.wanted = weight;
        self.refill(now);
        if now < self.not_before {
            return self.not_before;
        }
        if self.balance >= weight - 1e-9 {
            now
        } else {
            now + (weight - self.balance) / self.pace()
        }
    }

    pub(super) fn sent(&mut self, now: f64, weight: f64) {
        self.refill(now);
        self.balance -= weight;
        self.credit = (self.credit - weight).max(0.0);
    }

    pub(super) fn admitted(&mut self, now: f64, patience: f64) {
        self.refill(now);
        self.admissions += 1.0;
        self.last_admitted = now;
        self.first_dry = None;
        let doubling = (2.0 * patience).max(1.5 / self.pace()).max(0.6);
        if self.admissions > HEADROOM * self.plateau && now - self.grown_at > doubling {
            self.growth *= match self.shape {
                Shape::Careful { is_found: false } => 2.0,
                _ => GROWTH[self.growth_steps.min(GROWTH.len() - 1)],
            };
            self.growth_steps += 1;
            self.grown_at = now;
            if let Shape::Careful { is_found: false } = self.shape {
                self.admissions = 0.5 * self.plateau;
            }
        }
    }

    /// What a silence of so many seconds has left in the bucket, at most `most`.
    pub(super) fn rested(&mut self, seconds: f64, most: f64) {
        self.credit =
            self.credit_share * (0.97 * self.rate * seconds).min(0.9 * most - 1.0).max(0.0);
        self.balance = self.balance.max(self.credit);
    }

    /// Whether what went through at the start leaves no more than a request or two at once.
    fn is_small(&self, start: Start) -> bool {
        start.accepted - self.rate * start.seconds < 2.5
    }

    /// Draws conclusions from a rejection at that pace.
    fn learn(
        &mut self,
        now: f64,
        pace: f64,
        estimate: Estimate,
        marks: &mut Marks,
        bounce: Bounce,
    ) {
        let start = bounce.start;
        let is_small = self.is_small(start);
        if let Shape::Careful { is_found } = &mut self.shape {
            // Where each rejection costs a long block, one is enough to know.
            if self.admissions > 0.0 {
                // A bucket of that depth hides for so long that the pace is too fast.
                let is_close = self.admissions > 3.0 * start.accepted;
                self.rate = pace
                    * match *is_found {
                        true if is_close => 0.95,
                        true => 0.7,
                        false => 0.6,
                    };
                *is_found = true;
            }
            return;
        }
        if self.growth_steps > 1 {
            let step = GROWTH[(self.growth_steps - 1).min(GROWTH.len() - 1)];
            if let Shape::Short { .. } = self.shape {
                self.shape = Shape::Deep { next_trial: self.bounces + TRIAL_EVERY };
            }
            self.rate = match self.shape {
                Shape::Sharp { .. } => pace / step.sqrt(),
                _ => estimate.rate.max(pace / step.max(1.5)),
            };
            marks.forget();
            self.is_confident = true;
            return;
        }
        // Too few to measure by: only that it was too fast is sure.
        let measured = if estimate.count >= 3.0 {
            estimate.rate
        } else if self.is_confident {
            estimate.rate.clamp(0.8 * self.rate, self.rate)
        } else {
            estimate.rate
        };
        self.is_confident = estimate.count >= 10.0 || (self.is_confident && estimate.count < 3.0);
        match &mut self.shape {
            // Done above.
            Shape::Careful { .. } => {}
            Shape::Short { rate, misses } => {
                *misses = if self.admissions >= 4.0 { 0 } else { *misses + 1 };
                self.rate = if *misses == 0 { (0.994 * pace).max(*rate) } else { *rate };
                self.plateau = PLATEAU.1.max(2.0 * self.plateau.min(PLATEAU.1));
                if *misses > 12 {
                    self.rate = measured;
                    self.shape = Shape::Deep { next_trial: self.bounces + TRIAL_EVERY };
                }
            }
            Shape::Sharp { misses } => {
                if self.admissions >= 12.0 {
                    *misses = 0;
                    // What goes out before a rejection is known bounces too: the more that is, the
                    // more room is left and the longer until the next one.
                    let ahead = 1.0 + 0.25 * self.rate * bounce.patience;
                    let room = if bounce.block > LONG_BLOCK {
                        0.15
                    } else {
                        0.006 * ahead.sqrt().min(3.0)
                    };
                    self.rate = (1.0 - room) * pace;
                    self.plateau *= ahead.min(5.0);
                } else if self.admissions >= 4.0 {
                    self.rate = 0.98 * pace;
                } else if estimate.has_changed || self.admissions == 0.0 {
                    *misses += 1;
                    self.rate = measured;
                } else {
                    *misses += 1;
                    self.rate *= 0.95;
                }
                if *misses > 3 && is_small {
                    *misses = 0;
                    self.rate = measured;
                } else if *misses > 3 {
                    self.rate = measured;
                    self.shape = Shape::Deep { next_trial: self.bounces + TRIAL_EVERY };
                }
            }
            Shape::Trial { rate, since } => {
                // More went through than a bucket of that rate could have refilled.
                let excess = self.admissions - *rate * (now - *since);
                if excess > 2.0 && self.growth_steps == 0 {
                    self.shape = Shape::Sharp { misses: 0 };
                    self.rate = 0.994 * pace;
                } else {
                    self.shape = Shape::Deep { next_trial: self.bounces + TRIAL_EVERY };
                    self.rate = measured;
                }
            }
            Shape::Deep { next_trial } => {
                self.rate = measured;
                let is_near = pace > 1.03 * measured && pace < 1.4 * measured;
                if is_near && self.bounces >= *next_trial {
                    self.rate = 0.99 * pace / self.growth;
                    self.shape = Shape::Trial { rate: measured, since: now };
                }
            }
        }
    }

    /// Far too much was sent: back to what was accepted.
    pub(super) fn brake(&mut self, now: f64, rate: f64) {
        if rate > 0.0 && rate < self.rate {
            self.rate = rate.max(0.35 * self.rate);
            self.shape = Shape::Deep { next_trial: self.bounces + TRIAL_EVERY };
            self.growth = 1.0;
            self.growth_steps = 0;
            self.grown_at = now;
        }
    }

    /// Nothing for the time in which so much is refilled.
    pub(super) fn pause(&mut self, now: f64, amount: f64) {
        self.not_before = self.not_before.max(now + (amount / self.rate).min(LONGEST_WAIT));
    }

    /// A request bounced; it is in the marks already.
    pub(super) fn bounced(&mut self, now: f64, marks: &mut Marks, bounce: Bounce) {
        let start = bounce.start;
        // The time since the one before is what counts, not what it was meant to be.
        let pace = (1.0 / bounce.gap.max(1e-6)).clamp(0.9 * self.pace(), 1.5 * self.pace());
        let is_dry = bounce.accepted < self.accepted + 0.5;
        self.accepted = bounce.accepted;
        if !is_dry {
            self.first_dry = None;
        }
        if !is_dry {
            self.known_rate = self.rate;
        }
        let is_careful = matches!(self.shape, Shape::Careful { .. });
        let lost = bounce.lost(is_careful.then_some(self.rate));
        let is_small = self.is_small(start);
        let is_deep = matches!(self.shape, Shape::Deep { .. } | Shape::Trial { .. });
        // Right after a long block there was room for next to nothing.
        let after_rest = bounce.after_rest.map_or(f64::INFINITY, |(_, accepted)| accepted);
        let is_at_once = bounce.block > LONG_BLOCK && after_rest < 3.0;
        if is_at_once {
            self.credit_share = 0.0;
        }
        if (lost > 1.0 || is_at_once) && !is_careful {
            // The block is longer than a bucket needs that was emptied at once.
            self.shape = Shape::Careful { is_found: false };
            self.rate = CAREFUL_START * start.accepted.max(1.0) / bounce.block;
            self.admissions = 0.0;
        } else if is_deep && is_small {
            self.shape = Shape::Sharp { misses: 0 };
        }
        self.bounces += 1;
        if let Some(estimate) = marks.estimate() {
            self.plateau = estimate.count.clamp(PLATEAU.0, PLATEAU.1);
            self.learn(now, pace, estimate, marks, bounce);
        }
        if let Shape::Careful { is_found } = self.shape {
            self.plateau = if is_found {
                (10.0 * lost).clamp(20.0, 2000.0)
            } else {
                (CAREFUL_HOLD * start.accepted / HEADROOM).max(1.0)
            };
        }
        if is_dry {
            let first = *self.first_dry.get_or_insert(now);
            let wait = (0.9 * (now - first)).max(DRY_WAIT / self.rate).min(LONGEST_WAIT);
            self.not_before = now + wait;
        }
        self.admissions = 0.0;
        self.growth = 1.0;
        self.growth_steps = 0;
        self.grown_at = now;
        self.credit = 0.0;
        self.refill(now);
        self.balance = match self.shape {
            Shape::Sharp { .. } if bounce.is_last => 0.6,
            Shape::Sharp { .. } => self.balance.min(0.6),
            _ => 0.0,
        };
        if is_dry {
            self.balance = 1.0;
        }
    }
}
