//! Next datapoints for the combination with the highest bound, until a share of all cells is evaluated.

use super::error::{OptionsError, at_least, fraction, part};
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{EvaluationRound, Selector, SelectorStep};
use crate::space::{Cell, Space};
use crate::winner;

/// Options of [`MatrixUcb`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MatrixUcbConfig {
    /// Exploration constant `a` of the bound mean + √(a/n).
    pub curiosity: f64,
    /// Share of all cells to evaluate, rounded up.
    pub fraction: f64,
    /// Cells evaluated between two updates of the means. It does not depend on the concurrency limit, so the choice does
    /// not either. `None`: a fifth of the cells to evaluate, at most 20, the default concurrency limit.
    pub batch: Option<usize>,
}

impl Default for MatrixUcbConfig {
    fn default() -> MatrixUcbConfig {
        MatrixUcbConfig { curiosity: 1.0, fraction: 0.3, batch: None }
    }
}

/// Maximum of the default batch.
const MAX_DEFAULT_BATCH: usize = 20;

/// Evaluates the combination with the highest mean + √(a/n), unvisited ones first.
#[derive(Debug, Clone)]
pub struct MatrixUcb {
    plan: Plan,
    config: MatrixUcbConfig,
    /// Number of cells to evaluate.
    target: usize,
    batch: usize,
    /// For each combination, the number of visited cells and their mean, as of the last update.
    rows: Vec<(usize, f64)>,
}

impl MatrixUcb {
    /// Creates the selector.
    ///
    /// # Errors
    ///
    /// A fraction outside (0, 1], negative curiosity, or empty batches.
    pub fn new(
        space: &Space,
        config: MatrixUcbConfig,
        seed: u64,
    ) -> Result<MatrixUcb, OptionsError> {
        let target = part(fraction(config.fraction)?, space.cells());
        at_least("curiosity", config.curiosity, 0.0)?;
        let batch = config.batch.unwrap_or_else(|| target.div_ceil(5).clamp(1, MAX_DEFAULT_BATCH));
        at_least("batch", batch as f64, 1.0)?;
        let rows = vec![(0, 0.0); space.combos()];
        Ok(MatrixUcb { plan: Plan::new(space, seed), config, target, batch, rows })
    }

    /// Updates the means of combinations that were visited since the last call.
    fn update(&mut self, evidence: &Evidence) {
        for (combo, row) in self.rows.iter_mut().enumerate() {
            let visited = evidence.visited(combo).0;
            if row.0 != visited {
                // A combination with nothing but errors has the value 0. If it were unknown, all of its cells
                // would be evaluated.
                *row = (visited, winner::adjusted_mean(evidence, combo).unwrap_or(0.0));
            }
        }
    }

    /// Returns the combination with the highest bound that has unvisited cells; the first of equals. `requested` cells of
    /// each combination count as visited.
    fn best_row(&self, requested: &[usize]) -> Option<usize> {
        let bound = |visited: usize, mean: f64| match visited {
            0 => f64::INFINITY,
            _ => mean + (self.config.curiosity / visited as f64).sqrt(),
        };
        let rows = self.rows.iter().zip(requested).enumerate();
        let rows = rows.map(|(combo, ((visited, mean), more))| (combo, visited + more, *mean));
        let open = rows.filter(|(_, visited, _)| *visited < self.plan.order.len());
        let bounds = open.map(|(combo, visited, mean)| (combo, bound(visited, mean)));
        let best = bounds.reduce(
            |first, other| {
                if other.1.total_cmp(&first.1).is_gt() { other } else { first }
            },
        );
        best.map(|(combo, _)| combo)
    }
}

impl Selector for MatrixUcb {
    fn name(&self) -> &'static str {
        "matrix_ucb"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        self.update(evidence);
        let left = self.target.saturating_sub(evidence.cells());
        let mut requested = vec![0; self.plan.combos];
        let next = if left == 0 { None } else { self.best_row(&requested) };
        let Some(row) = next else {
            let reason = format!("{} cells were evaluated", evidence.cells());
            return Plan::choose(evidence, 0..self.plan.combos, reason);
        };
        if self.rows[row].0 == 0 {
            // Unvisited combinations come first in any case, so they can all be evaluated in one round.
            let unvisited = (0..self.plan.combos).filter(|combo| self.rows[*combo].0 == 0);
            let cells = unvisited.map(|combo| Cell { combo, datapoint: self.plan.order[0] });
            return SelectorStep::Evaluate(EvaluationRound {
                cells: cells.take(left).collect(),
                batch: 1,
            });
        }
        // Each further cell of the batch goes where the bound would be the highest if the cells before it left the means
        // as they are.
        let mut cells: Vec<Cell> = Vec::new();
        while cells.len() < self.batch.min(left)
            && let Some(combo) = self.best_row(&requested)
        {
            let row = self.plan.order.iter().map(|&datapoint| Cell { combo, datapoint });
            let unvisited = row.filter(|cell| !evidence.is_visited(*cell));
            cells.extend(unvisited.skip(requested[combo]).take(1));
            requested[combo] += 1;
        }
        let batch = cells.len();
        SelectorStep::Evaluate(EvaluationRound { cells, batch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, filled, run, space};

    fn new_selector(space: &Space, fraction: f64, batch: usize) -> MatrixUcb {
        MatrixUcb::new(space, MatrixUcbConfig { fraction, batch: Some(batch), curiosity: 1.0 }, 4)
            .unwrap()
    }

    /// The first datapoint of the order.
    fn first_datapoint(space: &Space) -> usize {
        new_selector(space, 1.0, 1).plan.order[0]
    }

    #[test]
    fn combination_with_the_highest_bound_is_next() {
        let space = space(3, 4);
        // The first has no unvisited cells. Of the others 0.5 + √(1/2) = 1.207 and 0.3 + √(1/1) = 1.3.
        let rows = [vec![Some(1.0); 4], vec![Some(0.5); 2], vec![Some(0.3)]];
        let mut selector = new_selector(&space, 1.0, 1);
        selector.update(&filled(&space, &rows));
        assert_eq!(selector.best_row(&[0; 3]), Some(2));
        // 0.2 + 1 = 1.2 is less than 1.207.
        let rows = [vec![Some(1.0); 4], vec![Some(0.5); 2], vec![Some(0.2)]];
        let mut selector = new_selector(&space, 1.0, 1);
        selector.update(&filled(&space, &rows));
        assert_eq!(selector.best_row(&[0; 3]), Some(1));
        // An unvisited combination comes before all others.
        let mut selector = new_selector(&space, 1.0, 1);
        selector.update(&filled(&space, &[vec![Some(1.0)], vec![Some(1.0)], vec![]]));
        assert_eq!(selector.best_row(&[0; 3]), Some(2));
    }

    #[test]
    fn default_batch_uses_the_default_concurrency_and_spreads_over_combinations() {
        let space = space(9, 80);
        let mut selector = MatrixUcb::new(&space, MatrixUcbConfig::default(), 4).unwrap();
        let score = |cell: Cell| Some(0.1 * cell.combo as f64);
        let (rounds, end, _) = run(&space, &mut selector, score);
        assert_eq!(chosen(&end), 8);
        assert!(rounds[1..rounds.len() - 1].iter().all(|round| round.cells.len() == 20));
        let combos = |round: &EvaluationRound| {
            let combos = round.cells.iter().map(|cell| cell.combo);
            combos.collect::<std::collections::BTreeSet<_>>().len()
        };
        assert!(combos(&rounds[1]) > 3, "{rounds:?}");
    }

    #[test]
    fn share_of_the_cells_is_evaluated() {
        let space = space(5, 10);
        for (fraction, cells) in [(0.3, 15), (0.31, 16), (0.02, 1), (1.0, 50)] {
            let score = |cell: Cell| Some(f64::from(cell.combo == 3));
            let (_, end, evidence) = run(&space, &mut new_selector(&space, fraction, 4), score);
            assert_eq!(evidence.cells(), cells);
            assert_eq!(chosen(&end), if cells == 1 { 0 } else { 3 });
        }
    }

    #[test]
    fn failing_cells_are_not_retried() {
        let space = space(2, 10);
        let (_, end, evidence) = run(&space, &mut new_selector(&space, 1.0, 1), |_| None);
        assert!(matches!(end, SelectorStep::NoWinner(_)));
        assert_eq!(evidence.cells(), 20);
        // A combination of errors is not evaluated to its end either, even with one success.
        let space = crate::testing::space(2, 100);
        let score = |cell: Cell| match cell.combo {
            0 => (cell.datapoint == first_datapoint(&space)).then_some(1.0),
            _ => Some(0.9),
        };
        let (_, end, evidence) = run(&space, &mut new_selector(&space, 0.5, 1), score);
        assert_eq!(chosen(&end), 1);
        assert!(evidence.visited(0).0 <= 10, "{:?}", evidence.visited(0));
    }
}
