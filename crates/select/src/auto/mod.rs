//! `auto`: paired, by a model, and for as little money as it can.
//!
//! All combinations see the datapoints in one shuffled order, each as far as it has come. A model of
//! all scores gives the chance that anybody is better than the leader by more than ε; the search ends
//! when that is small, and the next cells are those that make it smaller for the least money. Nothing
//! is given up for ever, and so nothing is reported as eliminated: who has next to no chance is left
//! lying, and comes back when the leader falls. What it claims is a model's, not a proof; the proof is
//! `strict`'s.

mod condition;
mod design;
mod draws;
mod factor;
mod normal;
mod population;
mod posterior;
mod rivals;
mod scales;
mod seen;
mod table;
mod tuning;
mod verdict;

pub use tuning::Tuning;

use crate::evidence::Evidence;
use crate::selector::{Choice, Round, Selector, Step};
use crate::space::Space;
use design::Design;
use posterior::Posterior;
use rivals::Rivals;
use scales::Scales;
use seen::Seen;
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
    /// Depths at which combinations stop.
    depths: Vec<usize>,
    /// What was believed last; empty before the first fit.
    means: Vec<f64>,
    /// Who was ahead last, and how sure that was.
    ahead: Option<Choice>,
}

/// Rivals whose chances are looked at one by one when cells are chosen, and the least chance, as a
/// share of the error that is allowed.
const MOST_RIVALS: usize = 100;
const LEAST_CHANCE: f64 = 2e-4;
/// Where more rivals than these have much the same chance, this share of the largest, there is no
/// telling them apart by price and promise: all of them go on, and rounds are few.
const FLAT: f64 = 0.1;
/// Combinations that are looked at beyond the first datapoints; of more, the best. The time that a
/// round takes grows with the cube of it. Before the search ends all are looked at.
const MOST_DEEP: usize = 600;

impl Auto {
    /// For a space.
    pub fn new(space: &Space, options: AutoOptions) -> Auto {
        let table = Table::new(space, options.seed);
        let design = Design::new(space);
        let scales = Scales::new(&design, space.combos(), options.tuning);
        let mut depths = vec![options.tuning.first.clamp(1, table.total())];
        while let Some(&last) = depths.last().filter(|last| **last < table.total()) {
            let step = (options.tuning.step * last as f64).ceil().max(1.0) as usize;
            depths.push((last + step).min(table.total()));
        }
        Auto { options, table, design, scales, depths, means: Vec::new(), ahead: None }
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

    /// Where one that has come so far stops next.
    fn step_to(&self, depth: usize) -> usize {
        self.depths.iter().copied().find(|to| *to > depth).unwrap_or(depth)
    }

    /// What there is to look at, of so many beyond the first datapoints.
    fn seen(&self, most: usize) -> Seen {
        let first = self.depths[0];
        let mut deep: Vec<usize> =
            (0..self.table.arms()).filter(|&arm| self.table.depth(arm) > first).collect();
        if deep.len() > most && !self.means.is_empty() {
            deep.sort_by(|&one, &other| self.means[other].total_cmp(&self.means[one]));
        }
        let mut within = vec![first; self.table.arms()];
        deep.iter().take(most).for_each(|&arm| within[arm] = usize::MAX);
        Seen::new(&self.table, |arm| within[arm])
    }

    /// Who gets how far next: those who make the chances smaller for the least money.
    fn wanted(&self, rivals: &Rivals<'_>) -> Vec<(usize, usize)> {
        let chances: Vec<f64> = (0..self.table.arms()).map(|arm| rivals.better(arm)).collect();
        let least = LEAST_CHANCE * (1.0 - self.options.confidence);
        let mut close: Vec<usize> =
            (0..chances.len()).filter(|&arm| chances[arm] > least).collect();
        close.sort_by(|&one, &other| chances[other].total_cmp(&chances[one]));
        if let Some(all) = self.flat(&close, &chances, rivals.leader) {
            return all;
        }
        close.truncate(MOST_RIVALS);
        let mut worth = Vec::new();
        for &arm in close.iter().chain([&rivals.leader]) {
            let from = self.table.depth(arm);
            let to = self.step_to(from);
            if to > from {
                // Never nothing, so that somebody goes on.
                let gain = rivals.gain(arm, to - from, &close) + 1e-9;
                worth.push((arm, to, gain / ((to - from) as f64 * self.price(arm))));
            }
        }
        let most = worth.iter().map(|(_, _, worth)| *worth).fold(0.0, f64::max);
        let least = self.options.tuning.band * most;
        worth.retain(|(_, _, worth)| *worth >= least);
        worth.into_iter().map(|(arm, to, _)| (arm, to)).collect()
    }

    /// All that are close, where there is no telling them apart: two steps on. `None` where there is,
    /// or nobody can go on.
    fn flat(&self, close: &[usize], chances: &[f64], leader: usize) -> Option<Vec<(usize, usize)>> {
        let (first, last) = (chances[*close.first()?], chances[*close.get(MOST_RIVALS)?]);
        if last < FLAT * first {
            return None;
        }
        let all = close.iter().copied().filter(|&arm| chances[arm] >= FLAT * first);
        let on = |arm: usize| {
            let from = self.table.depth(arm);
            let to = self.step_to(self.step_to(from));
            (to > from).then_some((arm, to))
        };
        let all: Vec<(usize, usize)> = all.chain([leader]).filter_map(on).collect();
        (!all.is_empty()).then_some(all)
    }

    /// What a cell of a combination costs. Free ones cost next to nothing.
    fn price(&self, arm: usize) -> f64 {
        self.table.cost(arm).max(1e-12)
    }

    /// What to do about what was seen; `None` when the model cannot be solved.
    fn decide(&mut self, seen: &Seen) -> Option<Decision> {
        if self.means.is_empty() {
            for _ in 0..self.options.tuning.sweeps {
                let now = Posterior::new(seen, &self.design, &self.scales)?;
                self.scales = self.scales.improved(seen, &self.design, &now);
            }
        }
        let now = Posterior::new(seen, &self.design, &self.scales)?;
        let decision = self.decide_by(&now);
        let next = self.scales.improved(seen, &self.design, &now);
        self.means = now.means;
        self.scales = next;
        Some(decision)
    }

    fn decide_by(&self, now: &Posterior<'_>) -> Decision {
        let rivals = Rivals::new(now, &self.options.tuning, self.options.epsilon);
        let (leader, enough) = (rivals.leader, 1.0 - self.options.confidence);
        let doubt = rivals.anybody(enough);
        let depth = self.table.depth(leader);
        let deep = depth >= self.options.tuning.leader.min(self.table.total());
        let mut wanted = Vec::new();
        if !deep || doubt > enough {
            wanted = self.wanted(&rivals);
            if !deep && wanted.iter().all(|(arm, _)| *arm != leader) {
                wanted.push((leader, self.step_to(depth)));
            }
        }
        if wanted.is_empty() {
            return Decision::Stop(self.verdict(&rivals, doubt));
        }
        // Said to the end here, where above it only had to be told from what is allowed.
        let (confidence, reason) = (Some(1.0 - rivals.anybody(1.0)), String::new());
        Decision::GoOn { wanted, ahead: Choice { combo: leader, confidence, reason } }
    }
}

/// What to do next.
enum Decision {
    Stop(Choice),
    /// Who goes on, and how far; and who is ahead by now.
    GoOn {
        wanted: Vec<(usize, usize)>,
        ahead: Choice,
    },
}

impl Selector for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        if self.table.arms() == 0 {
            return Step::GiveUp("there are no combinations".to_owned());
        }
        self.table.update(evidence);
        if self.table.depth(0) == 0 {
            let wanted: Vec<_> = (0..self.table.arms()).map(|arm| (arm, self.depths[0])).collect();
            let round = self.round(&wanted, evidence);
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
            self.table.update(evidence);
        }
        if self.table.is_blank() {
            return Step::GiveUp("all of the first cells errored".to_owned());
        }
        loop {
            let mut decision = self.decide(&self.seen(MOST_DEEP));
            let deep = |arm: usize| self.table.depth(arm) > self.depths[0];
            let many = (0..self.table.arms()).filter(|&arm| deep(arm)).count() > MOST_DEEP;
            if many && matches!(decision, Some(Decision::Stop(_))) {
                decision = self.decide(&self.seen(usize::MAX));
            }
            let wanted = match decision {
                None => return Step::GiveUp("the scores cannot be fitted".to_owned()),
                Some(Decision::Stop(choice)) => return Step::Choose(choice),
                Some(Decision::GoOn { wanted, ahead }) => {
                    self.ahead = Some(ahead);
                    wanted
                }
            };
            let round = self.round(&wanted, evidence);
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
            // All of it had been paid for before.
            self.table.update(evidence);
        }
    }

    fn so_far(&self, _evidence: &Evidence) -> Option<Choice> {
        self.ahead.clone()
    }
}
