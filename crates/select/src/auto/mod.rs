//! `auto`: paired, by a model, and for as little money as it can.
//!
//! All combinations see the datapoints in one shuffled order, each as far as it has come. A model of
//! the population gives the chance that a rival is better than the leader by more than ε; the search
//! ends when the chance that anybody is is small, and the next cells are those that make it smaller
//! for the least money. Nothing is given up for ever: who has next to no chance is left lying, and
//! comes back when the leader falls. What it claims is a model's, not a proof; the proof is
//! `strict`'s.

mod normal;
mod posterior;
mod rivals;
mod scales;
mod seen;
mod table;
mod tuning;

pub use tuning::Tuning;

use crate::evidence::Evidence;
use crate::selector::{Choice, Round, Selector, Step};
use crate::space::Space;
use posterior::Posterior;
use rivals::Rivals;
use scales::Scales;
use seen::{Design, Seen};
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
    options: AutoOptions,
    table: Table,
    design: Design,
    scales: Scales,
    grid: Vec<usize>,
    fitted: bool,
}

/// Steps towards the scales before the first choice; then one a round.


impl Auto {
    /// For a space.
    pub fn new(space: &Space, options: AutoOptions) -> Auto {
        let table = Table::new(space, options.seed);
        let design = Design::new(space);
        let scales = Scales::new(&design, space.combos(), options.tuning);
        let tuning = options.tuning;
        let mut grid = vec![tuning.first.min(table.total())];
        while let Some(&last) = grid.last().filter(|last| **last < table.total()) {
            let step = (tuning.step * last as f64).ceil().max(1.0) as usize;
            grid.push((last + step).min(table.total()));
        }
        Auto { design, scales, options, table, grid, fitted: false }
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

    /// All combinations stop at the same few depths, so that few blocks of datapoints differ in who
    /// saw them.
    fn step_to(&self, depth: usize) -> usize {
        self.grid.iter().copied().find(|to| *to > depth).unwrap_or(depth)
    }

    /// Who gets how far next: those who make the chances smaller for the least money.
    fn wanted(&self, rivals: &Rivals<'_>) -> Vec<(usize, usize)> {
        let chances: Vec<f64> = (0..self.table.arms()).map(|arm| rivals.better(arm)).collect();
        let mut active: Vec<usize> = (0..chances.len()).filter(|&arm| chances[arm] > 1e-5).collect();
        active.sort_by(|&one, &other| chances[other].total_cmp(&chances[one]));
        active.truncate(100);
        let mut worth = Vec::new();
        for &arm in active.iter().chain(std::iter::once(&rivals.leader)) {
            let from = self.table.depth(arm);
            let to = self.step_to(from);
            if to > from {
                let gain = rivals.gain(arm, to - from, &active) + 1e-6;
                worth.push((arm, to, gain / ((to - from) as f64 * self.price(arm))));
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
    fn choose(&self, rivals: &Rivals<'_>, doubt: f64) -> Choice {
        let mut spare = 1.0 - self.options.confidence - doubt;
        let leader = rivals.leader;
        let mut choice = (leader, 0.0);
        for arm in (0..self.table.arms()).filter(|&arm| arm != leader) {
            let complete = |arm: usize| self.table.depth(arm) == self.table.total();
            let margin =
                if complete(arm) && complete(leader) { 0.0 } else { self.options.epsilon };
            let cheaper = self.price(arm) < 0.95 * self.price(leader)
                && self.price(arm) < self.price(choice.0);
            if cheaper {
                let worse = rivals.worse(arm, margin);
                if worse <= spare {
                    choice = (arm, worse);
                }
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
            let seen = Seen::new(&self.table);
            let mut steps = if self.fitted { 0 } else { tuning.sweeps };
            let now = loop {
                let Some(now) = Posterior::new(&seen, &self.design, &self.scales) else {
                    return Step::GiveUp("the model cannot be solved".to_owned());
                };
                if steps == 0 {
                    break now;
                }
                self.scales.improve(&seen, &self.design, &now);
                steps -= 1;
            };
            self.fitted = true;
            let leader = (0..self.table.arms())
                .fold(0, |best, arm| if now.means[arm] > now.means[best] { arm } else { best });
            let context = (&self.design, &self.scales, &seen);
            let rivals = Rivals::new(&now, context, tuning, (leader, self.options.epsilon));
            let doubt = rivals.anybody(tuning.stop * (1.0 - self.options.confidence));
            let deep = self.table.depth(leader) >= tuning.leader.min(self.table.total());
            if std::env::var("AUTO_DEBUG").is_ok() {
                rivals.debug();
            }
            if deep && doubt <= tuning.stop * (1.0 - self.options.confidence) {
                return Step::Choose(self.choose(&rivals, doubt));
            }
            let mut wanted = self.wanted(&rivals);
            if !deep && wanted.iter().all(|(arm, _)| *arm != leader) {
                wanted.push((leader, self.step_to(self.table.depth(leader))));
            }
            if wanted.is_empty() {
                return Step::Choose(self.choose(&rivals, doubt));
            }
            self.scales.improve(&seen, &self.design, &now);
            let round = self.round(&wanted, evidence);
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
            // All of it had been paid for before.
            self.table.update(evidence);
        }
    }
}
