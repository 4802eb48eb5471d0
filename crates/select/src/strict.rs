//! `strict`: what is dropped is worse, by a theorem and not by a model.
//!
//! All that are still in see the datapoints together, in one shuffled order. For each ordered pair a
//! bet is placed against "this one is not worse than that one"; the datapoints are drawn without
//! replacement, so that under that hypothesis the mean of what is left is known to be at least so
//! much, and the wealth of who bets against it is a nonnegative supermartingale. By Ville's
//! inequality it ever reaches `(K − 1) / α` with a chance of at most `α / (K − 1)`; the best has K − 1
//! rivals, so that it is dropped with a chance of at most α, however often one looks.
//! (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting".)
//!
//! A cell that errored could have been anything. For the pair it takes the value that speaks most for
//! the one that would be dropped, so that what holds for every value holds for the true one.

use crate::bet::Bet;
use crate::evidence::Evidence;
use crate::selector::{Choice, Elimination, Round, Selector, Step};
use crate::space::{Cell, Space};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// What a search by [`Strict`] is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StrictOptions {
    /// How sure it has to be that the best is not dropped.
    pub confidence: f64,
    /// Scores lie between these.
    pub range: (f64, f64),
    /// Datapoints of a round, as a share of all: a smaller one stops earlier and waits more often.
    pub step: f64,
    /// Shuffles the datapoints.
    pub seed: u64,
}

impl Default for StrictOptions {
    fn default() -> StrictOptions {
        StrictOptions { confidence: 0.95, range: (0.0, 1.0), step: 0.02, seed: 0 }
    }
}

/// Drops only what is proved to be worse.
#[derive(Debug)]
pub struct Strict {
    options: StrictOptions,
    order: Vec<usize>,
    arms: usize,
    active: Vec<usize>,
    /// Bets against each, by its rival: `against[i·arms + j]` is that i is worse than j.
    bets: Vec<Bet>,
    wanted: usize,
    seen: usize,
    eliminations: Vec<Elimination>,
}

impl Strict {
    /// For a space.
    pub fn new(space: &Space, options: StrictOptions) -> Strict {
        let mut order: Vec<usize> = (0..space.datapoints()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(options.seed));
        let arms = space.combos();
        let alpha = (1.0 - options.confidence).clamp(1e-12, 1.0);
        let needed = ((arms.max(2) - 1) as f64 / alpha).ln();
        Strict {
            options,
            arms,
            active: (0..arms).collect(),
            bets: vec![Bet::new(space.datapoints(), needed); arms * arms],
            order,
            wanted: 0,
            seen: 0,
            eliminations: Vec::new(),
        }
    }

    /// Scores of those that are still in, from 0 to 1; `None` where a cell errored.
    fn scores(&self, evidence: &Evidence, datapoint: usize) -> Vec<Option<f64>> {
        let (low, high) = self.options.range;
        let score = |&combo: &usize| {
            let value = evidence.value(Cell { combo, datapoint })?;
            Some(((value - low) / (high - low)).clamp(0.0, 1.0))
        };
        self.active.iter().map(score).collect()
    }

    fn update(&mut self, evidence: &Evidence) {
        if self.active.len() < 2 {
            self.seen = self.wanted;
        }
        while self.seen < self.wanted && self.active.len() > 1 {
            let scores = self.scores(evidence, self.order[self.seen]);
            self.seen += 1;
            let mut dropped: Vec<(usize, usize)> = Vec::new();
            for (at, &arm) in self.active.iter().enumerate() {
                for (rival_at, &rival) in self.active.iter().enumerate() {
                    if arm != rival {
                        // Whatever is missing speaks for the one that would be dropped.
                        let mine = scores[at].unwrap_or(1.0);
                        let theirs = scores[rival_at].unwrap_or(0.0);
                        let bet = &mut self.bets[arm * self.arms + rival];
                        bet.see((mine - theirs + 1.0) / 2.0);
                        let known = dropped.last().is_some_and(|(last, _)| *last == arm);
                        if bet.is_won() && !known {
                            dropped.push((arm, rival));
                        }
                    }
                }
            }
            // Two bets can be won at once against each other only by an error; never drop all.
            dropped.truncate(self.active.len() - 1);
            for (combo, by) in dropped {
                self.active.retain(|&arm| arm != combo);
                let after_cells = evidence.cells();
                self.eliminations.push(Elimination { combo, after_cells, by: Some(by) });
            }
        }
    }

    fn choose(&self, evidence: &Evidence) -> Choice {
        // Counted as it was bet: who errs often does not win by the few that are there.
        let mean = |combo: usize| {
            let seen = &self.order[..self.seen];
            let value = |&datapoint: &usize| {
                evidence.value(Cell { combo, datapoint }).unwrap_or(self.options.range.0)
            };
            seen.iter().map(value).sum::<f64>()
        };
        let means: Vec<(usize, f64)> = self.active.iter().map(|&arm| (arm, mean(arm))).collect();
        let best =
            means.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best });
        let combo = best.map_or(0, |(arm, _)| arm);
        let reason = match self.active.len() {
            1 if self.arms == 1 => "there is no other".to_owned(),
            1 => "all others are proved to be worse".to_owned(),
            left => format!("all datapoints are seen; {left} are not proved to be worse"),
        };
        Choice { combo, confidence: Some(self.options.confidence), reason }
    }
}

impl Selector for Strict {
    fn name(&self) -> &'static str {
        "strict"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        loop {
            self.update(evidence);
            let is_told = self.active.len() < 2 && self.wanted > 0;
            if is_told || self.wanted == self.order.len() {
                let choice = self.choose(evidence);
                return match evidence.figures(choice.combo).n {
                    0 => Step::GiveUp("no cell that was paid for gave a score".to_owned()),
                    _ => Step::Choose(choice),
                };
            }
            let step = ((self.options.step * self.order.len() as f64) as usize).max(1);
            let to = (self.wanted + step).min(self.order.len());
            let datapoints = &self.order[self.wanted..to];
            let cells = self.active.iter().flat_map(|&combo| {
                datapoints.iter().map(move |&datapoint| Cell { combo, datapoint })
            });
            let cells: Vec<Cell> = cells.filter(|cell| !evidence.is_visited(*cell)).collect();
            let batch = to - self.wanted;
            self.wanted = to;
            if !cells.is_empty() {
                return Step::Evaluate(Round { cells, batch });
            }
        }
    }

    fn eliminations(&self) -> &[Elimination] {
        &self.eliminations
    }
}
