//! The row that could be best gets the next datapoints, until a share of all cells is paid for.

use super::error::{OptionsError, at_least, fraction, part};
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Round, Selector, Step};
use crate::space::{Cell, Space};
use crate::winner;

/// How curious, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixUcbConfig {
    /// What uncertainty is worth: the bound is mean + √(a/n).
    pub curiosity: f64,
    /// Share of all cells to pay for, rounded up.
    pub fraction: f64,
    /// Datapoints of the best row that are evaluated at once. It is fixed here, and not by how many
    /// slots there are: what is chosen must not depend on those.
    pub batch: usize,
}

impl Default for MatrixUcbConfig {
    fn default() -> MatrixUcbConfig {
        MatrixUcbConfig { curiosity: 1.0, fraction: 0.3, batch: 1 }
    }
}

/// Evaluates the row with the highest mean + √(a/n); a row that nobody has seen comes first.
#[derive(Debug, Clone)]
pub struct MatrixUcb {
    plan: Plan,
    config: MatrixUcbConfig,
    /// Cells to pay for.
    target: usize,
    /// For each row, cells visited when its mean was taken, and the mean: only rows that were visited
    /// since need to be looked at again.
    rows: Vec<(usize, f64)>,
}

impl MatrixUcb {
    /// Starts with everybody.
    ///
    /// # Errors
    ///
    /// A fraction outside of (0, 1], negative curiosity, or empty batches.
    pub fn new(
        space: &Space,
        config: MatrixUcbConfig,
        seed: u64,
    ) -> Result<MatrixUcb, OptionsError> {
        let target = part(fraction(config.fraction)?, space.cells());
        at_least("curiosity", config.curiosity, 0.0)?;
        at_least("batch", config.batch as f64, 1.0)?;
        let rows = vec![(0, 0.0); space.combos()];
        Ok(MatrixUcb { plan: Plan::new(space, seed), config, target, rows })
    }

    fn look(&mut self, evidence: &Evidence) {
        for (combo, row) in self.rows.iter_mut().enumerate() {
            let visited = evidence.visited(combo).0;
            if row.0 != visited {
                // A row of nothing but errors is worth nothing, and not unknown: it would be paid for to
                // its end.
                *row = (visited, winner::standing(evidence, combo).unwrap_or(0.0));
            }
        }
    }

    /// The row with the highest bound that is not full; the first of equals.
    fn row(&self) -> Option<usize> {
        let bound = |(visited, mean): (usize, f64)| match visited {
            0 => f64::INFINITY,
            _ => mean + (self.config.curiosity / visited as f64).sqrt(),
        };
        let open = self.rows.iter().enumerate().filter(|row| row.1.0 < self.plan.order.len());
        let bounds = open.map(|(combo, row)| (combo, bound(*row)));
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

    fn next(&mut self, evidence: &Evidence) -> Step {
        self.look(evidence);
        let left = self.target.saturating_sub(evidence.cells());
        let next = if left == 0 { None } else { self.row() };
        let Some(row) = next else {
            let reason = format!("{} cells were paid for", evidence.cells());
            return Plan::choose(evidence, 0..self.plan.combos, reason);
        };
        if self.rows[row].0 == 0 {
            // Unseen rows come first in any case, so that they can all be asked at once.
            let unseen = (0..self.plan.combos).filter(|combo| self.rows[*combo].0 == 0);
            let cells = unseen.map(|combo| Cell { combo, datapoint: self.plan.order[0] });
            return Step::Evaluate(Round { cells: cells.take(left).collect(), batch: 1 });
        }
        let mut round = self.plan.whole(evidence, [row]);
        round.cells.truncate(self.config.batch.min(left));
        round.batch = round.cells.len();
        Step::Evaluate(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, filled, run, space};

    fn made(space: &Space, fraction: f64, batch: usize) -> MatrixUcb {
        MatrixUcb::new(space, MatrixUcbConfig { fraction, batch, curiosity: 1.0 }, 4).unwrap()
    }

    /// The datapoint that is visited first.
    fn first_datapoint(space: &Space) -> usize {
        made(space, 1.0, 1).plan.order[0]
    }

    #[test]
    fn the_row_with_the_highest_bound_is_next() {
        let space = space(3, 4);
        // 1 + √(1/4) is full. Of the others 0.5 + √(1/2) = 1.207 and 0.3 + √(1/1) = 1.3.
        let rows = [vec![Some(1.0); 4], vec![Some(0.5); 2], vec![Some(0.3)]];
        let mut selector = made(&space, 1.0, 1);
        selector.look(&filled(&space, &rows));
        assert_eq!(selector.row(), Some(2));
        // 0.2 + 1 = 1.2 is less than 1.207.
        let rows = [vec![Some(1.0); 4], vec![Some(0.5); 2], vec![Some(0.2)]];
        let mut selector = made(&space, 1.0, 1);
        selector.look(&filled(&space, &rows));
        assert_eq!(selector.row(), Some(1));
        // Nothing is above a row that nobody has seen.
        let mut selector = made(&space, 1.0, 1);
        selector.look(&filled(&space, &[vec![Some(1.0)], vec![Some(1.0)], vec![]]));
        assert_eq!(selector.row(), Some(2));
    }

    #[test]
    fn a_share_of_the_cells_is_paid_for() {
        let space = space(5, 10);
        for (fraction, cells) in [(0.3, 15), (0.31, 16), (0.02, 1), (1.0, 50)] {
            let score = |cell: Cell| Some(f64::from(cell.combo == 3));
            let (_, end, evidence) = run(&space, &mut made(&space, fraction, 4), score);
            assert_eq!(evidence.cells(), cells);
            assert_eq!(chosen(&end), if cells == 1 { 0 } else { 3 });
        }
    }

    #[test]
    fn failing_cells_are_not_tried_again() {
        let space = space(2, 10);
        let (_, end, evidence) = run(&space, &mut made(&space, 1.0, 1), |_| None);
        assert!(matches!(end, Step::GiveUp(_)));
        assert_eq!(evidence.cells(), 20);
        // Nor is a row of errors paid for to its end, be it for one success.
        let space = crate::testing::space(2, 100);
        let score = |cell: Cell| match cell.combo {
            0 => (cell.datapoint == first_datapoint(&space)).then_some(1.0),
            _ => Some(0.9),
        };
        let (_, end, evidence) = run(&space, &mut made(&space, 0.5, 1), score);
        assert_eq!(chosen(&end), 1);
        assert!(evidence.visited(0).0 <= 10, "{:?}", evidence.visited(0));
    }
}
