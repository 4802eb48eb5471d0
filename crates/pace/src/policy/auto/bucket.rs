//! The hypothesis that requests are limited per time.
//!
//! We send at a pace along a cubic, counted in admissions since the last rejection: a little below
//! the rate, slowly up to it, flat there, and then faster and faster until the next rejection. A
//! bucket that holds several requests evens this out; of one that holds a single request it
//! wastes little.

use super::marks::Marks;

/// Admissions until the pace is at the rate, when that is hardly known and when it is well known.
const PLATEAU: (f64, f64) = (5.0, 20.0);
/// How far below the rate the pace starts, times the plateau's length.
const DEPTH: f64 = 0.3;
/// Plateaus without a rejection after which the rate must have risen.
const HEADROOM: f64 = 3.0;
/// How the pace grows then, step by step.
const GROWTH: [f64; 4] = [1.1, 1.25, 1.5, 2.0];
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
    /// More than the usual may go out at once: what a silence has left over.
    credit: f64,
    not_before: f64,
    last_admitted: f64,
    first_dry: Option<f64>,
    is_small: bool,
    /// The rate before the present silence.
    known_rate: f64,
}

/// What went through before the first rejection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) accepted: f64,
    pub(super) seconds: f64,
}

impl Bucket {
    pub(super) fn new(now: f64, marks: &mut Marks) -> Bucket {
        let rate = marks.estimate().map_or(1.0, |estimate| estimate.rate);
        Bucket::with_rate(now, rate, false)
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
            credit: 0.0,
            not_before: now,
            last_admitted: now,
            first_dry: None,
            is_small,
            known_rate: rate,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn pace(&self) -> f64 {
        let along = (self.admissions / self.plateau).min(HEADROOM) - 1.0;
        self.rate * (1.0 + DEPTH / self.plateau * along.powi(3)) * self.growth
    }

    pub(super) fn known_rate(&self) -> f64 {
        self.known_rate
    }

    fn refill(&mut self, now: f64) {
        let gained = (now - self.refilled_at) * self.pace();
        let depth = (0.05 * self.rate).max(1.2) + self.credit;
        self.balance = (self.balance + gained).min(depth);
        self.refilled_at = now;
    }

    /// When the next request may go out.
    pub(super) fn next_at(&mut self, now: f64) -> f64 {
        self.refill(now);
        if now < self.not_before {
            return self.not_before;
        }
        if self.balance >= 1.0 - 1e-9 { now } else { now + (1.0 - self.balance) / self.pace() }
    }

    pub(super) fn sent(&mut self, now: f64) {
        self.refill(now);
        self.balance -= 1.0;
        self.credit = (self.credit - 1.0).max(0.0);
    }

    pub(super) fn admitted(&mut self, now: f64, patience: f64) {
        self.refill(now);
        self.admissions += 1.0;
        self.last_admitted = now;
        self.first_dry = None;
        let doubling = (2.0 * patience).max(1.5 / self.rate).max(0.6);
        if self.admissions > HEADROOM * self.plateau && now - self.grown_at > doubling {
            self.growth *= GROWTH[self.growth_steps.min(GROWTH.len() - 1)];
            self.growth_steps += 1;
            self.grown_at = now;
        }
    }

    /// What a silence of so many seconds has left in the bucket, at most `most`.
    pub(super) fn rested(&mut self, seconds: f64, most: f64) {
        self.credit = (0.97 * self.rate * seconds).min(most);
        self.balance = self.balance.max(self.credit);
    }

    /// A request bounced; it is in the marks already.
    pub(super) fn bounced(&mut self, now: f64, marks: &mut Marks, start: Start) {
        let pace = self.pace();
        let is_dry = self.admissions == 0.0;
        if !is_dry {
            self.known_rate = self.rate;
        }
        if let Some(estimate) = marks.estimate() {
            let grew = self.growth > 1.0;
            let is_small = start.accepted - estimate.rate.max(self.rate) * start.seconds < 2.5;
            if !is_small {
                self.rate = estimate.rate;
            } else if grew {
                self.rate = pace / GROWTH[(self.growth_steps - 1).min(GROWTH.len() - 1)].sqrt();
            } else if self.admissions >= 4.0 {
                self.rate = 0.994 * pace;
            } else if estimate.has_changed || self.admissions == 0.0 {
                self.rate = estimate.rate;
            } else {
                self.rate *= 0.95;
            }
            self.is_small = is_small;
            self.plateau = estimate.count.clamp(PLATEAU.0, PLATEAU.1);
            if !is_small && grew && estimate.has_changed {
                self.rate = self.rate.max(pace / 2.0);
                marks.forget();
            }
        }
        if is_dry {
            let first = *self.first_dry.get_or_insert(now);
            let wait = (0.9 * (now - first)).max(1.0 / self.rate).min(LONGEST_WAIT);
            self.not_before = now + wait;
        }
        self.admissions = 0.0;
        self.growth = 1.0;
        self.growth_steps = 0;
        self.grown_at = now;
        self.credit = 0.0;
        self.refilled_at = now;
        self.balance = if self.is_small { 0.6 } else { 0.0 };
        if is_dry {
            self.balance = 1.0;
        }
    }
}
