//! `auto`: paired, model-based and cost-aware search.
//!
//! All combinations see the datapoints in one shuffled order, each up to its own depth. A joint model of
//! all scores gives the probability that any combination is better than the leader by more than ε. The
//! search ends once this is small, and the next cells are those that reduce it most per cost. No
//! combination is eliminated for good: one with a negligible probability is not evaluated further, but
//! returns if the leader falls. Before the search ends, bets that need no model confirm the leader. Even so, the
//! confidence is an estimate; `strict` gives a guarantee.

mod choose;
mod condition;
mod data;
mod design;
mod draws;
mod factor;
mod guard;
mod normal;
mod population;
mod posterior;
mod rivals;
mod scales;
mod table;
mod tuning;

pub use tuning::AutoTuning;

use crate::evidence::Evidence;
use crate::selector::{EvaluationRound, Selector, SelectorChoice, SelectorStep};
use crate::space::Space;
use data::ModelData;
use design::Design;
use guard::Guard;
use posterior::Posterior;
use rivals::Rivals;
use scales::Scales;
use table::ScoreTable;

/// Options of [`Auto`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AutoOptions {
    /// Confidence required to stop.
    pub confidence: f64,
    /// Difference in scores that does not matter.
    pub epsilon: f64,
    /// Seed of the datapoint order.
    pub seed: u64,
    /// Tuning constants.
    pub tuning: AutoTuning,
}

impl Default for AutoOptions {
    fn default() -> AutoOptions {
        AutoOptions { confidence: 0.95, epsilon: 0.01, seed: 0, tuning: AutoTuning::default() }
    }
}

/// Evaluates the cells that are most informative for their cost.
#[derive(Debug)]
pub struct Auto {
    options: AutoOptions,
    table: ScoreTable,
    design: Design,
    scales: Scales,
    /// Depths at which combinations pause.
    depths: Vec<usize>,
    /// Means of the last fit; empty before the first.
    means: Vec<f64>,
    /// Leader of the last fit, with its confidence.
    leader: Option<SelectorChoice>,
}

/// Maximum number of rivals whose gains are computed one by one.
const MAX_RIVALS: usize = 100;
/// Minimum probability of such a rival, as a share of the allowed error probability.
const MIN_PROBABILITY: f64 = 2e-4;
/// If more than [`MAX_RIVALS`] rivals have at least this share of the largest probability, gains cannot
/// separate them, and all advance together to keep the number of rounds low.
const FLAT_SHARE: f64 = 0.1;
/// Maximum number of combinations modelled beyond the first block; the best by mean are taken. The time
/// of a round grows with its cube. Before the search ends, all are modelled.
const MAX_DEEP: usize = 1200;

impl Auto {
    /// Creates the selector for a space.
    pub fn new(space: &Space, options: AutoOptions) -> Auto {
        let table = ScoreTable::new(space, options.seed);
        let design = Design::new(space);
        let scales = Scales::new(&design, space.combos(), options.tuning);
        let mut depths = vec![options.tuning.first_cells.clamp(1, table.total())];
        while let Some(&last) = depths.last().filter(|last| **last < table.total()) {
            let step = (options.tuning.depth_step * last as f64).ceil().max(1.0) as usize;
            depths.push((last + step).min(table.total()));
        }
        Auto { options, table, design, scales, depths, means: Vec::new(), leader: None }
    }

    /// Requests cells up to the target depth of each combination.
    fn round(&mut self, targets: &[(usize, usize)], evidence: &Evidence) -> EvaluationRound {
        let mut round = EvaluationRound { cells: Vec::new(), batch: 0 };
        for &(arm, to) in targets {
            let cells = self.table.advance(arm, to, evidence);
            round.batch = round.batch.max(cells.len());
            round.cells.extend(cells);
        }
        round
    }

    /// Returns the next depth after this one.
    fn next_depth(&self, depth: usize) -> usize {
        self.depths.iter().copied().find(|to| *to > depth).unwrap_or(depth)
    }

    /// Returns the data of the model, with at most `max_deep` combinations beyond the first block.
    fn data(&self, max_deep: usize) -> ModelData {
        let first = self.depths[0];
        let mut deep: Vec<usize> =
            (0..self.table.arms()).filter(|&arm| self.table.depth(arm) > first).collect();
        if deep.len() > max_deep && !self.means.is_empty() {
            deep.sort_by(|&one, &other| self.means[other].total_cmp(&self.means[one]));
        }
        let mut max_depth = vec![first; self.table.arms()];
        deep.iter().take(max_deep).for_each(|&arm| max_depth[arm] = usize::MAX);
        ModelData::new(&self.table, |arm| max_depth[arm])
    }

    /// Whether the data are all cells of the table.
    fn has_all_cells(&self, data: &ModelData) -> bool {
        (0..self.table.arms()).all(|arm| data.depth(arm) == self.table.depth(arm))
    }

    /// Returns the next combinations with their target depths: those that reduce the error probability
    /// most per cost.
    fn targets(&self, rivals: &Rivals<'_>) -> Vec<(usize, usize)> {
        let probabilities: Vec<f64> =
            (0..self.table.arms()).map(|arm| rivals.better(arm)).collect();
        let min = MIN_PROBABILITY * (1.0 - self.options.confidence);
        let mut close: Vec<usize> =
            (0..probabilities.len()).filter(|&arm| probabilities[arm] > min).collect();
        close.sort_by(|&one, &other| probabilities[other].total_cmp(&probabilities[one]));
        if let Some(all) = self.flat_targets(&close, &probabilities, rivals.leader) {
            return all;
        }
        close.truncate(MAX_RIVALS);
        let mut values = Vec::new();
        for &arm in close.iter().chain([&rivals.leader]) {
            let from = self.table.depth(arm);
            let to = self.next_depth(from);
            if to > from {
                // A positive minimum, so that at least one combination advances.
                let gain = rivals.gain(arm, to - from, &close) + 1e-9;
                values.push((arm, to, gain / ((to - from) as f64 * self.cost(arm))));
            }
        }
        let max = values.iter().map(|(_, _, value)| *value).fold(0.0, f64::max);
        let min = self.options.tuning.round_band * max;
        values.retain(|(_, _, value)| *value >= min);
        values.into_iter().map(|(arm, to, _)| (arm, to)).collect()
    }

    /// Returns all close rivals, two depths further, if there are too many similar ones to separate;
    /// otherwise, or if none can advance, `None`.
    fn flat_targets(
        &self,
        close: &[usize],
        probabilities: &[f64],
        leader: usize,
    ) -> Option<Vec<(usize, usize)>> {
        let first = probabilities[*close.first()?];
        let last = probabilities[*close.get(MAX_RIVALS)?];
        if last < FLAT_SHARE * first {
            return None;
        }
        let similar = close.iter().copied().filter(|&arm| probabilities[arm] >= FLAT_SHARE * first);
        let target = |arm: usize| {
            let from = self.table.depth(arm);
            let to = self.next_depth(self.next_depth(from));
            (to > from).then_some((arm, to))
        };
        let targets: Vec<(usize, usize)> = similar.chain([leader]).filter_map(target).collect();
        (!targets.is_empty()).then_some(targets)
    }

    /// Cost of a combination's cell in dollars, that of the others if it is unknown; never quite 0, since gains are
    /// divided by it.
    fn cost(&self, arm: usize) -> f64 {
        self.table.cost(arm).unwrap_or_else(|| self.table.mean_cost().unwrap_or(1.0)).max(1e-12)
    }

    /// Fits the model and decides what to do; `None` if the model cannot be solved.
    fn decide(&mut self, data: &ModelData) -> Option<NextAction> {
        if self.means.is_empty() {
            for _ in 0..self.options.tuning.initial_fits {
                let posterior = Posterior::new(data, &self.design, &self.scales)?;
                self.scales = self.scales.refit(data, &self.design, &posterior);
            }
        }
        let posterior = Posterior::new(data, &self.design, &self.scales)?;
        let action = self.next_action(&posterior, data);
        let scales = self.scales.refit(data, &self.design, &posterior);
        self.means = posterior.means;
        self.scales = scales;
        Some(action)
    }

    fn next_action(&self, posterior: &Posterior<'_>, data: &ModelData) -> NextAction {
        let rivals = Rivals::new(posterior, &self.options.tuning, self.options.epsilon);
        let (leader, alpha) = (rivals.leader, 1.0 - self.options.confidence);
        let any_better = rivals.any_better(alpha);
        let depth = self.table.depth(leader);
        let is_deep = depth >= self.options.tuning.min_winner_depth.min(self.table.total());
        let mut targets = Vec::new();
        if !is_deep || any_better > alpha {
            targets = self.targets(&rivals);
            if !is_deep && targets.iter().all(|(arm, _)| *arm != leader) {
                targets.push((leader, self.next_depth(depth)));
            }
        }
        let guard = Guard::new(&rivals, data, alpha);
        if targets.is_empty() && self.has_all_cells(data) {
            targets = guard.targets(data);
        }
        if targets.is_empty() {
            return NextAction::Stop(self.final_choice(&rivals, any_better, &guard));
        }
        // Computed in full here; above, only its comparison with alpha mattered.
        let confidence = self.claim(1.0 - rivals.any_better(1.0), &guard);
        let (confidence, reason) = (Some(confidence), String::new());
        let leader = SelectorChoice { combo: leader, confidence, reason };
        NextAction::Advance { targets, leader }
    }
}

/// Next action of the search.
enum NextAction {
    Stop(SelectorChoice),
    /// Advance these combinations to these depths, with the current leader.
    Advance {
        targets: Vec<(usize, usize)>,
        leader: SelectorChoice,
    },
}

impl Selector for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        if self.table.arms() == 0 {
            return SelectorStep::NoWinner("there are no combinations".to_owned());
        }
        self.table.update(evidence);
        if self.table.depth(0) == 0 {
            let targets: Vec<_> = (0..self.table.arms()).map(|arm| (arm, self.depths[0])).collect();
            let round = self.round(&targets, evidence);
            if !round.cells.is_empty() {
                return SelectorStep::Evaluate(round);
            }
            self.table.update(evidence);
        }
        if self.table.is_blank() {
            return SelectorStep::NoWinner("all cells of the first round errored".to_owned());
        }
        loop {
            let mut action = self.decide(&self.data(MAX_DEEP));
            let is_deep = |arm: usize| self.table.depth(arm) > self.depths[0];
            let deep = (0..self.table.arms()).filter(|&arm| is_deep(arm)).count();
            if deep > MAX_DEEP && matches!(action, Some(NextAction::Stop(_))) {
                action = self.decide(&self.data(usize::MAX));
            }
            let targets = match action {
                None => return SelectorStep::NoWinner("the scores cannot be fitted".to_owned()),
                Some(NextAction::Stop(choice)) => return SelectorStep::Choose(choice),
                Some(NextAction::Advance { targets, leader }) => {
                    self.leader = Some(leader);
                    targets
                }
            };
            let round = self.round(&targets, evidence);
            if !round.cells.is_empty() {
                return SelectorStep::Evaluate(round);
            }
            // All requested cells were evaluated before.
            self.table.update(evidence);
        }
    }

    fn so_far(&self, _evidence: &Evidence) -> Option<SelectorChoice> {
        self.leader.clone()
    }

    fn claim(&self) -> Option<String> {
        let epsilon = self.options.epsilon;
        Some(format!("no combination is more than {epsilon} better on these cases"))
    }
}
