//! `auto`: paired, by a model, and for as little money as it can.
//!
//! All combinations see the datapoints in one shuffled order, each as far as it has come. A model of
//! the population gives the chance that a rival is better than the leader by more than ε; the search
//! ends when all of these chances together are small, and the next cells are those that make them
//! smaller for the least money. Nothing is given up for ever: who has next to no chance is left
//! lying, and comes back when the leader falls. What it claims is a model's, not a proof; the proof
//! is `strict`'s.

mod adjust;
mod apart;
mod estimate;
mod normal;
mod prior;
mod spread;
mod table;
mod tuning;

pub use tuning::Tuning;

use crate::evidence::Evidence;
use crate::selector::{Choice, Round, Selector, Step};
use crate::space::Space;
use adjust::Difficulty;
use estimate::{Estimate, Standing};
use prior::Prior;
use table::Table;

/// What a search by [`Auto`] is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoOptions {
    /// How sure it has to be.
    pub confidence: f64,
    /// Differences that do not matter.
    pub epsilon: f64,
    /// Shuffles the datapoints.
    pub seed: u64,
    /// Constants.
    pub tuning: Tuning,
}

impl Default for AutoOptions {
    fn default() -> AutoOptions {
        AutoOptions { confidence: 0.95, epsilon: 0.01, seed: 0, tuning: Tuning::default() }
    }
}

/// Pays for the cells that tell the most for their money.
#[derive(Debug)]
pub struct Auto {
    space: Space,
    options: AutoOptions,
    table: Table,
    difficulty: Difficulty,
    prior: Prior,
}

impl Auto {
    /// For a space.
    pub fn new(space: &Space, options: AutoOptions) -> Auto {
        let table = Table::new(space, options.seed);
        Auto {
            difficulty: Difficulty::new(space),
            prior: Prior::new(space),
            space: space.clone(),
            options,
            table,
        }
    }

    fn round(&mut self, wanted: &[(usize, usize)], evidence: &Evidence) -> Round {
        let mut round = Round { cells: Vec::new(), batch: 0 };
        for &(arm, to) in wanted {
            let cells = self.table.advance(arm, to, evidence);
            round.batch = round.batch.max(cells.len());
            round.cells.extend(cells);
        }
        round
    }

    fn step_to(&self, depth: usize) -> usize {
        let step = (self.options.tuning.step * depth as f64).ceil().max(1.0) as usize;
        (depth + step).min(self.table.total())
    }

    /// Who gets how far next: those who make the chances smaller for the least money.
    fn wanted(&self, now: &Estimate, standings: &[Standing]) -> Vec<(usize, usize)> {
        let (epsilon, leader) = (self.options.epsilon, now.leader);
        let mut active: Vec<usize> = (0..standings.len()).filter(|&arm| arm != leader).collect();
        active.sort_by(|&one, &other| standings[one].better.total_cmp(&standings[other].better));
        let mut spare = (1.0 - self.options.confidence) * self.options.tuning.parked;
        active.retain(|&arm| {
            spare -= standings[arm].better;
            spare < 0.0
        });
        let to = self.step_to(now.depth(leader));
        let mut worth = Vec::new();
        if to > now.depth(leader) {
            let gain = |&arm: &usize| {
                standings[arm].better - now.standing_at(arm, now.depth(arm), to, epsilon).better
            };
            let gain: f64 = active.iter().map(gain).sum();
            let doubt: f64 = active.iter().map(|&arm| standings[arm].better).sum();
            let steps = (to - now.depth(leader)) as f64;
            worth.push((leader, to, (gain.max(0.0) + 1e-4 * doubt) / (steps * self.price(leader))));
        }
        for &arm in &active {
            let to = self.step_to(now.depth(arm));
            if to > now.depth(arm) {
                let better = standings[arm].better;
                let gain = better - now.standing_at(arm, to, now.depth(leader), epsilon).better;
                let steps = (to - now.depth(arm)) as f64;
                worth.push((arm, to, (gain.max(0.0) + 1e-4 * better) / (steps * self.price(arm))));
            }
        }
        let most = worth.iter().map(|(_, _, worth)| *worth).fold(0.0, f64::max);
        let least = self.options.tuning.band * most;
        worth
            .into_iter()
            .filter(|(_, _, worth)| *worth >= least)
            .map(|(arm, to, _)| (arm, to))
            .collect()
    }

    fn price(&self, arm: usize) -> f64 {
        self.table.cost(arm).max(1e-12)
    }

    /// The cheapest that is as good, as far as the error that is left allows.
    fn choose(&self, now: &Estimate, standings: &[Standing], doubt: f64) -> Choice {
        let mut spare = 1.0 - self.options.confidence - doubt;
        let mut choice = (now.leader, 0.0);
        for arm in (0..standings.len()).filter(|&arm| arm != now.leader) {
            let worse = if now.depth(arm) == self.table.total()
                && now.depth(now.leader) == self.table.total()
            {
                now.standing(arm, 0.0).worse
            } else {
                standings[arm].worse
            };
            let cheaper = self.price(arm) < 0.95 * self.price(now.leader)
                && self.price(arm) < self.price(choice.0);
            if cheaper && worse <= spare {
                choice = (arm, worse);
            }
        }
        spare = (1.0 - doubt - choice.1).max(0.0);
        let reason = "the rivals' chances are small".to_owned();
        Choice { combo: choice.0, confidence: Some(spare), reason }
    }
}

impl Selector for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        let tuning = self.options.tuning;
        if self.table.arms() == 0 {
            return Step::GiveUp("there are no combinations".to_owned());
        }
        self.table.update(evidence);
        if self.table.depth(0) == 0 {
            let wanted: Vec<_> = (0..self.table.arms()).map(|arm| (arm, tuning.first)).collect();
            let round = self.round(&wanted, evidence);
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
            self.table.update(evidence);
        }
        loop {
            let now = Estimate::new(
                &self.space,
                &self.table,
                (&mut self.difficulty, &mut self.prior),
                tuning,
            );
            let standings: Vec<Standing> = (0..self.table.arms())
                .map(|arm| {
                    if arm == now.leader {
                        Standing::default()
                    } else {
                        now.standing(arm, self.options.epsilon)
                    }
                })
                .collect();
            let doubt = if tuning.joint {
                1.0 - standings.iter().map(|of| 1.0 - of.better).product::<f64>()
            } else {
                standings.iter().map(|of| of.better).sum()
            };
            let deep = now.depth(now.leader) >= tuning.leader.min(self.table.total());
            if deep && doubt <= 1.0 - self.options.confidence {
                return Step::Choose(self.choose(&now, &standings, doubt));
            }
            let mut wanted = self.wanted(&now, &standings);
            if !deep && wanted.iter().all(|(arm, _)| *arm != now.leader) {
                wanted.push((now.leader, self.step_to(now.depth(now.leader))));
            }
            if wanted.is_empty() {
                return Step::Choose(self.choose(&now, &standings, doubt));
            }
            let round = self.round(&wanted, evidence);
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
            // All of it had been paid for before.
            self.table.update(evidence);
        }
    }
}
