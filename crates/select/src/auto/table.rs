//! What has been seen, in the one order in which all combinations see the datapoints.

use crate::evidence::Evidence;
use crate::space::{Cell, Space};
use crate::winner::MOST_ERRORS;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Costs of a combination count up to this many times its median: one runaway answer says little
/// about the next.
const DEAREST: f64 = 5.0;

/// Scores in the shuffled order. Every combination has seen a prefix of it, so that any two are
/// always paired.
#[derive(Debug)]
pub(super) struct Table {
    order: Vec<usize>,
    /// Scores of each combination; NaN where a cell errored.
    rows: Vec<Vec<f64>>,
    costs: Vec<Vec<f64>>,
    wanted: Vec<usize>,
}

impl Table {
    pub(super) fn new(space: &Space, seed: u64) -> Table {
        let mut table = Table::in_order(space);
        table.order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        table
    }

    /// With the datapoints as they come.
    pub(super) fn in_order(space: &Space) -> Table {
        let rows = vec![Vec::new(); space.combos()];
        let order = (0..space.datapoints()).collect();
        Table { order, costs: rows.clone(), wanted: vec![0; rows.len()], rows }
    }

    /// Takes in what was asked for.
    pub(super) fn update(&mut self, evidence: &Evidence) {
        for combo in 0..self.rows.len() {
            while self.rows[combo].len() < self.wanted[combo] {
                let cell = Cell { combo, datapoint: self.order[self.rows[combo].len()] };
                self.rows[combo].push(evidence.value(cell).unwrap_or(f64::NAN));
                self.costs[combo].push(evidence.observation(cell).map_or(0.0, |seen| seen.cost));
            }
        }
    }

    /// Asks for a combination's next cells, and says which of them nobody has paid for.
    pub(super) fn advance(&mut self, combo: usize, to: usize, evidence: &Evidence) -> Vec<Cell> {
        let from = self.wanted[combo];
        let to = to.min(self.total()).max(from);
        self.wanted[combo] = to;
        let cells = self.order[from..to].iter().map(|&datapoint| Cell { combo, datapoint });
        cells.filter(|cell| !evidence.is_visited(*cell)).collect()
    }

    pub(super) fn arms(&self) -> usize {
        self.rows.len()
    }

    /// All datapoints.
    pub(super) fn total(&self) -> usize {
        self.order.len()
    }

    /// How far a combination has come.
    pub(super) fn depth(&self, arm: usize) -> usize {
        self.rows[arm].len()
    }

    pub(super) fn row(&self, arm: usize) -> &[f64] {
        &self.rows[arm]
    }

    /// Share of a combination's cells that errored.
    pub(super) fn missing(&self, arm: usize) -> f64 {
        let gaps = self.rows[arm].iter().filter(|value| value.is_nan()).count();
        gaps as f64 / self.depth(arm).max(1) as f64
    }

    /// Whether so many of its cells errored that they count as zeros: as for the other selectors, but
    /// one error alone is nobody's habit.
    pub(super) fn errs(&self, arm: usize) -> bool {
        let gaps = self.missing(arm) * self.depth(arm) as f64;
        gaps > 1.5 && self.missing(arm) > MOST_ERRORS
    }

    /// Whether anything was scored at all.
    pub(super) fn is_blank(&self) -> bool {
        self.rows.iter().flatten().all(|value| value.is_nan())
    }

    /// What a cell of a combination costs, with its dearest cells held down.
    pub(super) fn cost(&self, arm: usize) -> f64 {
        let mut costs = self.costs[arm].clone();
        costs.sort_by(f64::total_cmp);
        let Some(median) = costs.get(costs.len() / 2) else { return 1.0 };
        let most = if *median > 0.0 { DEAREST * median } else { f64::INFINITY };
        costs.iter().map(|cost| cost.min(most)).sum::<f64>() / costs.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Observation;
    use crate::objective::Objective;
    use crate::testing::space;

    #[test]
    fn what_was_paid_for_before_is_taken_in_and_not_asked_for_again() {
        let space = space(1, 4);
        let mut evidence = Evidence::new(&space, Objective::default());
        let observation = |score, cost| Observation { score, cost, paid: cost, latency: 1.0 };
        evidence.add(Cell { combo: 0, datapoint: 1 }, observation(None, 2.0));
        let mut table = Table::in_order(&space);
        let cells = table.advance(0, 3, &evidence);
        assert_eq!(cells.iter().map(|cell| cell.datapoint).collect::<Vec<_>>(), [0, 2]);
        evidence.add(cells[0], observation(Some(1.0), 1.0));
        evidence.add(cells[1], observation(Some(0.0), 90.0));
        table.update(&evidence);
        assert_eq!((table.depth(0), table.row(0)[0], table.row(0)[1].is_nan()), (3, 1.0, true));
        // One error alone is nobody's habit, and the runaway cost counts as five times the median.
        assert!(!table.errs(0) && (table.missing(0) - 1.0 / 3.0).abs() < 1e-9);
        assert!((table.cost(0) - (1.0 + 2.0 + 10.0) / 3.0).abs() < 1e-9);
    }
}
