//! What is known by now.

use crate::objective::Objective;
use crate::space::{Cell, Space};
use serde::{Deserialize, Serialize};

/// What a cell gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// How good it was, mostly from 0 to 1; `None` when it errored, which is missing data and never a
    /// zero.
    pub score: Option<f64>,
    /// Dollars that it takes, even when it errored.
    pub cost: f64,
    /// Dollars that were paid to see it: less where an equal call had been made before, more where
    /// somebody had to judge it.
    pub paid: f64,
    /// Seconds.
    pub latency: f64,
}

/// Everything that was observed.
#[derive(Debug, Clone)]
pub struct Evidence {
    rows: Vec<Row>,
    datapoints: usize,
    objective: Objective,
    /// What the largest cost and latency count as; fixed by [`Evidence::fix_scales`].
    scales: Option<(f64, f64)>,
    visited: usize,
    spent: f64,
    saved: f64,
}

#[derive(Debug, Clone)]
struct Row {
    cells: Vec<Option<Observation>>,
    visited: usize,
    missing: usize,
    /// Of cells with a score, and of those that errored.
    cost: f64,
    errors_cost: f64,
}

/// Figures of one combination, over the cells that are there.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RowFigures {
    /// Cells with a value.
    pub n: usize,
    /// Their mean; 0 when there are none.
    pub mean: f64,
    /// Their sample standard deviation; 0.5 when there are fewer than two.
    pub deviation: f64,
}

impl RowFigures {
    fn of(values: impl Iterator<Item = f64>) -> RowFigures {
        let (mut n, mut mean, mut squares) = (0_usize, 0.0, 0.0);
        for value in values {
            // Welford's, which does not lose digits.
            n += 1;
            let before = value - mean;
            mean += before / n as f64;
            squares += before * (value - mean);
        }
        let deviation = if n < 2 { 0.5 } else { (squares / (n - 1) as f64).sqrt() };
        RowFigures { n, mean, deviation }
    }

    /// The standard error of the mean.
    pub fn standard_error(&self) -> f64 {
        self.deviation / (self.n.max(1) as f64).sqrt()
    }
}

impl Evidence {
    /// Nothing yet.
    pub fn new(space: &Space, objective: Objective) -> Evidence {
        let row = Row {
            cells: vec![None; space.datapoints()],
            visited: 0,
            missing: 0,
            cost: 0.0,
            errors_cost: 0.0,
        };
        Evidence {
            rows: vec![row; space.combos()],
            datapoints: space.datapoints(),
            objective,
            scales: None,
            visited: 0,
            spent: 0.0,
            saved: 0.0,
        }
    }

    /// Adds what a cell gave. The first observation of a cell counts.
    pub fn add(&mut self, cell: Cell, observation: Observation) {
        let Some(row) = self.rows.get_mut(cell.combo) else { return };
        let Some(place @ None) = row.cells.get_mut(cell.datapoint) else { return };
        row.visited += 1;
        row.missing += usize::from(observation.score.is_none());
        self.visited += 1;
        match observation.score {
            Some(_) => row.cost += observation.cost,
            None => row.errors_cost += observation.cost,
        }
        self.spent += observation.paid;
        self.saved += (observation.cost - observation.paid).max(0.0);
        *place = Some(observation);
    }

    /// Fixes what the largest cost and latency are, from what is known by now. The first call counts.
    pub fn fix_scales(&mut self) {
        if self.scales.is_some() {
            return;
        }
        let seen = || self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let cost = seen().map(|seen| seen.cost).fold(0.0, f64::max);
        let latency = seen().map(|seen| seen.latency).fold(0.0, f64::max);
        self.scales = Some((cost, latency));
    }

    /// What a cell gave; `None` when nobody has paid for it.
    pub fn observation(&self, cell: Cell) -> Option<&Observation> {
        self.rows.get(cell.combo)?.cells.get(cell.datapoint)?.as_ref()
    }

    /// Whether a cell was paid for, whatever it gave.
    pub fn is_visited(&self, cell: Cell) -> bool {
        self.observation(cell).is_some()
    }

    /// What a cell is worth; `None` when nobody has paid for it, or it errored.
    pub fn value(&self, cell: Cell) -> Option<f64> {
        let seen = self.observation(cell)?;
        Some(self.worth(cell.combo, seen, seen.score?))
    }

    /// Whether a combination costs no more than it may, as far as anybody can tell.
    pub fn is_affordable(&self, combo: usize) -> bool {
        let most = self.objective.max_cost.unwrap_or(f64::INFINITY);
        self.mean_cost(combo).is_none_or(|cost| cost <= most)
    }

    fn worth(&self, combo: usize, seen: &Observation, score: f64) -> f64 {
        // Who is too dear is no rival: worse than anybody by the whole range of scores.
        let score = if self.is_affordable(combo) { score } else { score - 1.0 };
        if !self.objective.is_weighted() {
            return score;
        }
        let (cost, latency) = self.scales.unwrap_or((0.0, 0.0));
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        score
            - self.objective.cost_weight * share(seen.cost, cost)
            - self.objective.latency_weight * share(seen.latency, latency)
    }

    /// Figures of a combination.
    pub fn figures(&self, combo: usize) -> RowFigures {
        RowFigures::of(
            (0..self.datapoints).filter_map(|datapoint| self.value(Cell { combo, datapoint })),
        )
    }

    /// Figures of a combination with its errors counted as a score of 0: what it can be held to when
    /// it errs often.
    pub fn figures_with_errors(&self, combo: usize) -> RowFigures {
        let seen = self.rows.get(combo).into_iter().flat_map(|row| row.cells.iter().flatten());
        RowFigures::of(seen.map(|seen| self.worth(combo, seen, seen.score.unwrap_or(0.0))))
    }

    /// Cells of a combination that were paid for, and those of them that errored.
    pub fn visited(&self, combo: usize) -> (usize, usize) {
        self.rows.get(combo).map_or((0, 0), |row| (row.visited, row.missing))
    }

    /// Cells that were paid for, in all.
    pub fn cells(&self) -> usize {
        self.visited
    }

    /// Dollars that were paid for them.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// Dollars that were not paid, because an equal call had been made before.
    pub fn saved(&self) -> f64 {
        self.saved
    }

    /// Mean cost of a combination's cells, of those without a score only where there are no others:
    /// what fails at once is no bargain. `None` when none was paid for.
    pub fn mean_cost(&self, combo: usize) -> Option<f64> {
        let row = self.rows.get(combo)?;
        let scored = row.visited - row.missing;
        match scored {
            0 => (row.visited > 0).then(|| row.errors_cost / row.visited as f64),
            _ => Some(row.cost / scored as f64),
        }
    }

    /// Mean latency of a combination's cells; `None` when none was paid for.
    pub fn mean_latency(&self, combo: usize) -> Option<f64> {
        let row = self.rows.get(combo)?;
        let sum: f64 = row.cells.iter().flatten().map(|seen| seen.latency).sum();
        (row.visited > 0).then(|| sum / row.visited as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn space() -> Space {
        let candidates = vec!["a".to_owned(), "b".to_owned()];
        Space::full(vec![Role { name: "r".to_owned(), candidates }], 4).unwrap()
    }

    fn seen(score: Option<f64>, cost: f64, latency: f64) -> Observation {
        Observation { score, cost, paid: cost, latency }
    }

    #[test]
    fn errors_are_missing_data_that_cost_money() {
        let mut evidence = Evidence::new(&space(), Objective::default());
        for (datapoint, score) in [Some(1.0), None, Some(0.0)].into_iter().enumerate() {
            evidence.add(Cell { combo: 0, datapoint }, seen(score, 0.5, 1.0));
        }
        // What is known of a cell does not change.
        evidence.add(Cell { combo: 0, datapoint: 0 }, seen(Some(0.0), 9.0, 1.0));
        let figures = evidence.figures(0);
        assert_eq!((figures.n, figures.mean), (2, 0.5));
        assert!((figures.deviation - 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!((evidence.visited(0), evidence.cells(), evidence.spent()), ((3, 1), 3, 1.5));
        let none = evidence.figures(1);
        assert_eq!((none.n, none.mean, none.deviation), (0, 0.0, 0.5));
        assert_eq!(evidence.mean_cost(1), None);
    }

    #[test]
    fn money_and_time_are_measured_by_what_the_first_cells_took() {
        let objective = Objective { cost_weight: 0.2, latency_weight: 0.1, max_cost: None };
        let mut evidence = Evidence::new(&space(), objective);
        evidence.add(Cell { combo: 0, datapoint: 0 }, seen(Some(1.0), 2.0, 10.0));
        evidence.add(Cell { combo: 1, datapoint: 0 }, seen(Some(1.0), 1.0, 5.0));
        evidence.fix_scales();
        // One that is dearer than all before does not change what the others are worth.
        evidence.add(Cell { combo: 1, datapoint: 1 }, seen(Some(1.0), 4.0, 10.0));
        evidence.fix_scales();
        let value = |combo, datapoint| evidence.value(Cell { combo, datapoint }).unwrap();
        assert!((value(0, 0) - 0.7).abs() < 1e-12);
        assert!((value(1, 0) - 0.85).abs() < 1e-12);
        assert!((value(1, 1) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn who_is_too_dear_is_worse_than_anybody() {
        let objective = Objective { max_cost: Some(1.0), ..Objective::default() };
        let mut evidence = Evidence::new(&space(), objective);
        evidence.add(Cell { combo: 0, datapoint: 0 }, seen(Some(1.0), 1.5, 0.0));
        assert_eq!((evidence.figures(0).mean, evidence.is_affordable(0)), (0.0, false));
        // It is the mean that counts.
        evidence.add(Cell { combo: 0, datapoint: 1 }, seen(Some(1.0), 0.5, 0.0));
        assert_eq!((evidence.figures(0).mean, evidence.is_affordable(0)), (1.0, true));
        assert!(evidence.is_affordable(1), "nobody knows");
    }

    #[test]
    fn what_was_not_paid_is_no_expense_of_the_search() {
        let mut evidence = Evidence::new(&space(), Objective::default());
        let shared = Observation { paid: 0.25, ..seen(Some(1.0), 1.0, 0.0) };
        evidence.add(Cell { combo: 0, datapoint: 0 }, shared);
        assert_eq!((evidence.spent(), evidence.saved()), (0.25, 0.75));
        assert_eq!(evidence.mean_cost(0), Some(1.0));
    }
}
