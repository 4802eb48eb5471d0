//! Observations collected during a search.

use crate::money::{self, model_dollars};
use crate::objective::Objective;
use crate::space::{Cell, Space};
use bakeoff_core::NanoDollars;
use serde::{Deserialize, Serialize};

/// Result of evaluating a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Score, usually from 0 to 1; `None` if the cell errored, which is missing data and never a zero.
    pub score: Option<f64>,
    /// Cost of the evaluation at full price, errors included; `None` if it is unknown.
    #[serde(default, with = "crate::money::optional_dollars")]
    pub cost: Option<NanoDollars>,
    /// Amount paid for it, as far as known: less than `cost` if an equal call was cached, more if a judge was called.
    #[serde(with = "crate::money::dollars")]
    pub paid: NanoDollars,
    /// Latency in seconds.
    pub latency: f64,
}

impl Default for Observation {
    /// A free, instant cell that errored.
    fn default() -> Observation {
        let none = NanoDollars::default();
        Observation { score: None, cost: Some(none), paid: none, latency: 0.0 }
    }
}

/// All observations of a search.
#[derive(Debug, Clone)]
pub struct Evidence {
    rows: Vec<Row>,
    datapoints: usize,
    objective: Objective,
    /// Largest cost and latency of the first round; set by [`Evidence::fix_scales`].
    scales: Option<(NanoDollars, f64)>,
    visited: usize,
    spent: NanoDollars,
    saved: NanoDollars,
    unknown_costs: usize,
}

#[derive(Debug, Clone)]
struct Row {
    cells: Vec<Option<Observation>>,
    visited: usize,
    errored: usize,
    /// Costs of the cells with a score.
    scored: CostSum,
    /// Costs of the cells that errored.
    errors: CostSum,
}

/// Sum of known costs.
#[derive(Debug, Clone, Copy, Default)]
struct CostSum {
    sum: NanoDollars,
    count: usize,
}

impl CostSum {
    fn add(&mut self, cost: NanoDollars) {
        self.sum += cost;
        self.count += 1;
    }
}

/// Mean and spread of the values of one combination.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ScoreStats {
    /// Number of cells with a value.
    pub n: usize,
    /// Mean; 0 without values.
    pub mean: f64,
    /// Sample standard deviation; 0.5 with fewer than two values.
    pub deviation: f64,
}

impl ScoreStats {
    fn of(values: impl Iterator<Item = f64>) -> ScoreStats {
        let (mut n, mut mean, mut squares) = (0_usize, 0.0, 0.0);
        for value in values {
            // Welford's algorithm, which avoids cancellation.
            n += 1;
            let before = value - mean;
            mean += before / n as f64;
            squares += before * (value - mean);
        }
        let deviation = if n < 2 { 0.5 } else { (squares / (n - 1) as f64).sqrt() };
        ScoreStats { n, mean, deviation }
    }

    /// Returns the standard error of the mean.
    pub fn standard_error(&self) -> f64 {
        self.deviation / (self.n.max(1) as f64).sqrt()
    }
}

impl Evidence {
    /// Creates an empty collection for a space.
    pub fn new(space: &Space, objective: Objective) -> Evidence {
        let row = Row {
            cells: vec![None; space.datapoints()],
            visited: 0,
            errored: 0,
            scored: CostSum::default(),
            errors: CostSum::default(),
        };
        Evidence {
            rows: vec![row; space.combos()],
            datapoints: space.datapoints(),
            objective,
            scales: None,
            visited: 0,
            spent: NanoDollars::default(),
            saved: NanoDollars::default(),
            unknown_costs: 0,
        }
    }

    /// Adds an observation. Later observations of the same cell are ignored.
    pub fn add(&mut self, cell: Cell, observation: Observation) {
        let Some(row) = self.rows.get_mut(cell.combo) else { return };
        let Some(entry @ None) = row.cells.get_mut(cell.datapoint) else { return };
        row.visited += 1;
        row.errored += usize::from(observation.score.is_none());
        self.visited += 1;
        self.spent += observation.paid;
        match observation.cost {
            Some(cost) => {
                let sum =
                    if observation.score.is_some() { &mut row.scored } else { &mut row.errors };
                sum.add(cost);
                self.saved += NanoDollars(cost.0.saturating_sub(observation.paid.0).max(0));
            }
            None => self.unknown_costs += 1,
        }
        *entry = Some(observation);
    }

    /// Fixes the scales of cost and latency at the maxima so far. Later calls have no effect.
    pub fn fix_scales(&mut self) {
        if self.scales.is_some() {
            return;
        }
        let observations = || self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let cost = observations().filter_map(|observation| observation.cost).max();
        let latency = observations().map(|observation| observation.latency).fold(0.0, f64::max);
        self.scales = Some((cost.unwrap_or_default(), latency));
    }

    /// Returns the observation of a cell; `None` if it has not been evaluated.
    pub fn observation(&self, cell: Cell) -> Option<&Observation> {
        self.rows.get(cell.combo)?.cells.get(cell.datapoint)?.as_ref()
    }

    /// Whether a cell was evaluated, with or without an error.
    pub fn is_visited(&self, cell: Cell) -> bool {
        self.observation(cell).is_some()
    }

    /// Returns the objective's value of a cell; `None` if it has not been evaluated or errored.
    pub fn value(&self, cell: Cell) -> Option<f64> {
        let observation = self.observation(cell)?;
        Some(self.weighted(cell.combo, observation, observation.score?))
    }

    /// Whether the mean cost of a combination is within the limit, or still unknown.
    pub fn is_within_cost_limit(&self, combo: usize) -> bool {
        let Some(limit) = self.objective.max_cost else { return true };
        let Some(CostSum { sum, count }) = self.cost_sum(combo) else { return true };
        // Exact: a rounded mean could hide an excess of less than a nano-dollar.
        i128::from(sum.0) <= i128::from(limit.0) * count as i128
    }

    /// Returns the objective's value of a score. An unknown cost is not weighed.
    fn weighted(&self, combo: usize, observation: &Observation, score: f64) -> f64 {
        // A combination above the cost limit is worse than any other by the whole range of scores.
        let score = if self.is_within_cost_limit(combo) { score } else { score - 1.0 };
        if !self.objective.is_weighted() {
            return score;
        }
        let (cost, latency) = self.scales.unwrap_or_default();
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        score
            - self.objective.cost_weight
                * share(model_dollars(observation.cost.unwrap_or_default()), model_dollars(cost))
            - self.objective.latency_weight * share(observation.latency, latency)
    }

    /// Whether cost or latency is weighed against the score.
    pub(crate) fn is_weighted(&self) -> bool {
        self.objective.is_weighted()
    }

    /// Returns the range of the objective for scores from 0 to 1; cells that are more expensive or slower than those of
    /// the first round can fall below it.
    pub(crate) fn value_range(&self) -> (f64, f64) {
        (-self.objective.cost_weight - self.objective.latency_weight, 1.0)
    }

    /// Returns the statistics of a combination.
    pub fn stats(&self, combo: usize) -> ScoreStats {
        ScoreStats::of(
            (0..self.datapoints).filter_map(|datapoint| self.value(Cell { combo, datapoint })),
        )
    }

    /// Returns the statistics of a combination with each error counted as a score of 0, which is the
    /// standard for combinations that error often.
    pub fn stats_with_errors_as_zero(&self, combo: usize) -> ScoreStats {
        let row = self.rows.get(combo).into_iter();
        let observations = row.flat_map(|row| row.cells.iter().flatten());
        ScoreStats::of(
            observations.map(|observation| {
                self.weighted(combo, observation, observation.score.unwrap_or(0.0))
            }),
        )
    }

    /// Returns how many cells of a combination were evaluated, and how many of these errored.
    pub fn visited(&self, combo: usize) -> (usize, usize) {
        self.rows.get(combo).map_or((0, 0), |row| (row.visited, row.errored))
    }

    /// Returns the number of evaluated cells.
    pub fn cells(&self) -> usize {
        self.visited
    }

    /// Returns the amount paid for them, as far as known; `None` if nothing is known.
    pub fn spent(&self) -> Option<NanoDollars> {
        (self.unknown_costs == 0 || !self.spent.is_zero()).then_some(self.spent)
    }

    /// Returns the number of evaluated cells of unknown cost.
    pub fn unknown_costs(&self) -> usize {
        self.unknown_costs
    }

    /// Returns the cost that was not paid because an equal call was cached.
    pub fn saved(&self) -> NanoDollars {
        self.saved
    }

    /// Returns the mean cost of a combination's cells; `None` if no cost is known.
    ///
    /// Errored cells count only if there are no others: a cell that fails at once is cheap and
    /// says nothing about the cost of a result.
    pub fn mean_cost(&self, combo: usize) -> Option<NanoDollars> {
        self.cost_sum(combo).map(|costs| money::mean(costs.sum, costs.count))
    }

    /// Costs that [`Evidence::mean_cost`] averages.
    fn cost_sum(&self, combo: usize) -> Option<CostSum> {
        let row = self.rows.get(combo)?;
        let costs = if row.visited > row.errored { row.scored } else { row.errors };
        (costs.count > 0).then_some(costs)
    }

    /// Returns the mean latency of a combination's cells in seconds; `None` if none was evaluated.
    pub fn mean_latency(&self, combo: usize) -> Option<f64> {
        let row = self.rows.get(combo)?;
        let sum: f64 = row.cells.iter().flatten().map(|observation| observation.latency).sum();
        (row.visited > 0).then(|| sum / row.visited as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use crate::testing::dollars;

    fn space() -> Space {
        let candidates = vec!["a".to_owned(), "b".to_owned()];
        Space::full(vec![Role { name: "r".to_owned(), candidates }], 4).unwrap()
    }

    fn observed(score: Option<f64>, cost: f64, latency: f64) -> Observation {
        Observation { score, cost: Some(dollars(cost)), paid: dollars(cost), latency }
    }

    #[test]
    fn errors_are_missing_data_with_a_cost() {
        let mut evidence = Evidence::new(&space(), Objective::default());
        for (datapoint, score) in [Some(1.0), None, Some(0.0)].into_iter().enumerate() {
            evidence.add(Cell { combo: 0, datapoint }, observed(score, 0.5, 1.0));
        }
        // The first observation of a cell stays.
        evidence.add(Cell { combo: 0, datapoint: 0 }, observed(Some(0.0), 9.0, 1.0));
        let stats = evidence.stats(0);
        assert_eq!((stats.n, stats.mean), (2, 0.5));
        assert!((stats.deviation - 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!((evidence.visited(0), evidence.cells()), ((3, 1), 3));
        assert_eq!(evidence.spent(), Some(dollars(1.5)));
        let none = evidence.stats(1);
        assert_eq!((none.n, none.mean, none.deviation), (0, 0.0, 0.5));
        assert_eq!(evidence.mean_cost(1), None);
    }

    #[test]
    fn cost_and_latency_are_scaled_by_the_first_round() {
        let objective = Objective { cost_weight: 0.2, latency_weight: 0.1, max_cost: None };
        let mut evidence = Evidence::new(&space(), objective);
        evidence.add(Cell { combo: 0, datapoint: 0 }, observed(Some(1.0), 2.0, 10.0));
        evidence.add(Cell { combo: 1, datapoint: 0 }, observed(Some(1.0), 1.0, 5.0));
        evidence.fix_scales();
        // A more expensive cell in a later round does not change the values of the others.
        evidence.add(Cell { combo: 1, datapoint: 1 }, observed(Some(1.0), 4.0, 10.0));
        evidence.fix_scales();
        let value = |combo, datapoint| evidence.value(Cell { combo, datapoint }).unwrap();
        assert!((value(0, 0) - 0.7).abs() < 1e-12);
        assert!((value(1, 0) - 0.85).abs() < 1e-12);
        assert!((value(1, 1) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn combination_above_the_cost_limit_loses_a_whole_point() {
        let objective = Objective { max_cost: Some(dollars(1.0)), ..Objective::default() };
        let mut evidence = Evidence::new(&space(), objective);
        evidence.add(Cell { combo: 0, datapoint: 0 }, observed(Some(1.0), 1.5, 0.0));
        assert_eq!((evidence.stats(0).mean, evidence.is_within_cost_limit(0)), (0.0, false));
        // The mean counts, not the single cell.
        evidence.add(Cell { combo: 0, datapoint: 1 }, observed(Some(1.0), 0.5, 0.0));
        assert_eq!((evidence.stats(0).mean, evidence.is_within_cost_limit(0)), (1.0, true));
        assert!(evidence.is_within_cost_limit(1), "its cost is unknown");
    }

    #[test]
    fn cached_calls_are_saved_and_not_spent() {
        let mut evidence = Evidence::new(&space(), Objective::default());
        let shared = Observation { paid: dollars(0.25), ..observed(Some(1.0), 1.0, 0.0) };
        evidence.add(Cell { combo: 0, datapoint: 0 }, shared);
        assert_eq!((evidence.spent(), evidence.saved()), (Some(dollars(0.25)), dollars(0.75)));
        assert_eq!(evidence.mean_cost(0), Some(dollars(1.0)));
    }

    #[test]
    fn observations_are_serialised_in_dollars() {
        let text = serde_json::to_string(&observed(Some(1.0), 0.0125, 2.0)).unwrap();
        assert_eq!(text, r#"{"score":1.0,"cost":0.0125,"paid":0.0125,"latency":2.0}"#);
        let read: Observation = serde_json::from_str(&text).unwrap();
        assert_eq!(read, observed(Some(1.0), 0.0125, 2.0));
    }

    #[test]
    fn unknown_costs_are_counted_and_not_averaged() {
        let mut evidence = Evidence::new(&space(), Objective::default());
        let unknown =
            Observation { cost: None, paid: dollars(0.0), ..observed(Some(1.0), 0.0, 1.0) };
        evidence.add(Cell { combo: 0, datapoint: 0 }, unknown.clone());
        assert_eq!((evidence.mean_cost(0), evidence.unknown_costs()), (None, 1));
        assert_eq!(evidence.spent(), None);
        evidence.add(Cell { combo: 0, datapoint: 1 }, observed(Some(1.0), 3.0, 1.0));
        evidence.add(Cell { combo: 0, datapoint: 2 }, observed(None, 9.0, 1.0));
        assert_eq!((evidence.mean_cost(0), evidence.unknown_costs()), (Some(dollars(3.0)), 1));
        let text = serde_json::to_string(&unknown).unwrap();
        assert_eq!(text, r#"{"score":1.0,"cost":null,"paid":0.0,"latency":1.0}"#);
        assert_eq!(serde_json::from_str::<Observation>(&text).unwrap(), unknown);
    }
}
