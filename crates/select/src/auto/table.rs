//! Scores in the datapoint order that all combinations share.

use crate::evidence::Evidence;
use crate::money::model_dollars;
use crate::space::{Cell, Space};
use crate::winner::MAX_ERROR_SHARE;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Costs of a combination are capped at this multiple of its median: one runaway response says little
/// about the next.
const MAX_COST_RATIO: f64 = 5.0;

/// Errors count as zeros only if so many are less likely than this at the tolerated share of errors.
const MAX_CHANCE: f64 = 0.01;

/// Scores in the shuffled order. Each combination has a prefix of it, so any two are paired.
#[derive(Debug)]
pub(super) struct ScoreTable {
    order: Vec<usize>,
    /// Scores of each combination; NaN for an errored cell.
    rows: Vec<Vec<f64>>,
    /// Costs of each combination in dollars.
    costs: Vec<Vec<f64>>,
    /// Number of requested cells of each combination.
    requested: Vec<usize>,
}

impl ScoreTable {
    pub(super) fn new(space: &Space, seed: u64) -> ScoreTable {
        let mut table = ScoreTable::in_order(space);
        table.order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        table
    }

    /// Creates a table with unshuffled datapoints.
    pub(super) fn in_order(space: &Space) -> ScoreTable {
        let rows = vec![Vec::new(); space.combos()];
        let order = (0..space.datapoints()).collect();
        ScoreTable { order, costs: rows.clone(), requested: vec![0; rows.len()], rows }
    }

    /// Adds the observations of all requested cells.
    pub(super) fn update(&mut self, evidence: &Evidence) {
        for combo in 0..self.rows.len() {
            while self.rows[combo].len() < self.requested[combo] {
                let cell = Cell { combo, datapoint: self.order[self.rows[combo].len()] };
                self.rows[combo].push(evidence.value(cell).unwrap_or(f64::NAN));
                let cost = evidence.observation(cell).and_then(|observation| observation.cost);
                self.costs[combo].extend(cost.map(model_dollars));
            }
        }
    }

    /// Requests the cells of a combination up to a depth; returns those that are not evaluated yet.
    pub(super) fn advance(&mut self, combo: usize, to: usize, evidence: &Evidence) -> Vec<Cell> {
        let from = self.requested[combo];
        let to = to.min(self.total()).max(from);
        self.requested[combo] = to;
        let cells = self.order[from..to].iter().map(|&datapoint| Cell { combo, datapoint });
        cells.filter(|cell| !evidence.is_visited(*cell)).collect()
    }

    pub(super) fn arms(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of datapoints.
    pub(super) fn total(&self) -> usize {
        self.order.len()
    }

    /// Returns the number of cells of a combination.
    pub(super) fn depth(&self, arm: usize) -> usize {
        self.rows[arm].len()
    }

    pub(super) fn row(&self, arm: usize) -> &[f64] {
        &self.rows[arm]
    }

    /// Returns the share of a combination's cells that errored.
    pub(super) fn errored_share(&self, arm: usize) -> f64 {
        let gaps = self.rows[arm].iter().filter(|value| value.is_nan()).count();
        gaps as f64 / self.depth(arm).max(1) as f64
    }

    /// Whether so many cells of a combination errored that they count as zeros.
    ///
    /// The rule is that of the other selectors, except that a single error is not enough, nor are a few among few cells,
    /// which may be chance.
    pub(super) fn is_error_prone(&self, arm: usize) -> bool {
        let gaps = self.rows[arm].iter().filter(|value| value.is_nan()).count();
        let is_complete = self.depth(arm) == self.total();
        gaps > 1
            && self.errored_share(arm) > MAX_ERROR_SHARE
            && (is_complete || chance_of_errors(gaps, self.depth(arm)) < MAX_CHANCE)
    }

    /// Whether no cell has a score.
    pub(super) fn is_blank(&self) -> bool {
        self.rows.iter().flatten().all(|value| value.is_nan())
    }

    /// Returns the mean over the combinations with a known cost; `None` if there is none.
    pub(super) fn mean_cost(&self) -> Option<f64> {
        let costs: Vec<f64> = (0..self.arms()).filter_map(|arm| self.cost(arm)).collect();
        (!costs.is_empty()).then(|| costs.iter().sum::<f64>() / costs.len() as f64)
    }

    /// Returns the mean of a combination's known costs, with outliers capped; `None` if no cost is known.
    pub(super) fn cost(&self, arm: usize) -> Option<f64> {
        let mut costs = self.costs[arm].clone();
        costs.sort_by(f64::total_cmp);
        let median = costs.get(costs.len() / 2)?;
        let cap = if *median > 0.0 { MAX_COST_RATIO * median } else { f64::INFINITY };
        Some(costs.iter().map(|cost| cost.min(cap)).sum::<f64>() / costs.len() as f64)
    }
}

/// Returns the probability of at least this many errors if each cell errs with the tolerated probability.
fn chance_of_errors(errors: usize, cells: usize) -> f64 {
    let odds = MAX_ERROR_SHARE / (1.0 - MAX_ERROR_SHARE);
    let mut term = (1.0 - MAX_ERROR_SHARE).powi(cells as i32);
    let mut fewer = 0.0;
    for count in 0..errors {
        fewer += term;
        term *= odds * (cells - count) as f64 / (count + 1) as f64;
    }
    (1.0 - fewer).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Observation;
    use crate::objective::Objective;
    use crate::testing::{dollars, filled, space};

    #[test]
    fn evaluated_cells_are_used_and_not_requested_again() {
        let space = space(1, 4);
        let mut evidence = Evidence::new(&space, Objective::default());
        let observation = |score, cost| {
            let cost = dollars(cost);
            Observation { score, cost: Some(cost), paid: cost, latency: 1.0 }
        };
        evidence.add(Cell { combo: 0, datapoint: 1 }, observation(None, 2.0));
        let mut table = ScoreTable::in_order(&space);
        let cells = table.advance(0, 3, &evidence);
        assert_eq!(cells.iter().map(|cell| cell.datapoint).collect::<Vec<_>>(), [0, 2]);
        evidence.add(cells[0], observation(Some(1.0), 1.0));
        evidence.add(cells[1], observation(Some(0.0), 90.0));
        table.update(&evidence);
        assert_eq!((table.depth(0), table.row(0)[0], table.row(0)[1].is_nan()), (3, 1.0, true));
        // A single error is not enough, and the outlier counts as five times the median.
        assert!(!table.is_error_prone(0) && (table.errored_share(0) - 1.0 / 3.0).abs() < 1e-9);
        assert!((table.cost(0).unwrap() - (1.0 + 2.0 + 10.0) / 3.0).abs() < 1e-9);
    }
    /// Whether this many errors, followed by scores, make a combination error-prone.
    fn is_error_prone(errors: usize, cells: usize, total: usize) -> bool {
        let space = space(1, total);
        let row = (0..cells).map(|at| (at >= errors).then_some(1.0)).collect();
        let evidence = filled(&space, &[row]);
        let mut table = ScoreTable::in_order(&space);
        table.advance(0, cells, &evidence);
        table.update(&evidence);
        table.is_error_prone(0)
    }

    #[test]
    fn few_errors_among_few_cells_may_be_chance() {
        // R: 1 - pbinom(c(1, 2), 10, 0.05) is 0.086 and 0.012; with three errors of nine cells it is 0.008.
        assert!(!is_error_prone(2, 10, 100) && !is_error_prone(3, 10, 100));
        assert!(is_error_prone(3, 9, 100));
        // In a complete row, the share alone decides, unless there is a single error.
        assert!(is_error_prone(2, 10, 10) && !is_error_prone(1, 10, 10));
        assert!(!is_error_prone(2, 40, 40) && is_error_prone(3, 40, 40));
    }
}
