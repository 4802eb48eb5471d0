//! Goals of `auto`, and whether its figures meet them.
//!
//! A claimed confidence must hold on every group of matrices, nearly so on each matrix, and it must not be bought with
//! more cost than needed. A cost below the lower bound is no success: it is a sign of stopping too early.

use super::replay::ReplayFigures;
use super::table::SelectRow;

/// Selector with goals.
pub const GOALS_OF: &str = "auto";

/// Maximum of claimed confidence minus find rate on a group of matrices; find rates significantly below the required
/// confidence minus this are misses on any matrix.
pub const MAX_OVERCLAIM: f64 = 0.03;

/// Maximum of claimed confidence minus find rate on a single matrix.
pub const MAX_SINGLE_OVERCLAIM: f64 = 0.08;

/// Significance level of the binomial test of each matrix.
pub const SIGNIFICANCE: f64 = 0.001;

/// Maximum cost of a group, relative to the larger of the reference's cost and the lower bound.
pub const MAX_COST: f64 = 1.4;

/// Figures of one group of matrices that have goals.
#[derive(Debug, Clone)]
pub struct GroupGoals {
    /// Name of the group.
    pub group: String,
    /// Number of matrices.
    pub matrices: usize,
    /// Mean claimed confidence.
    pub claimed: f64,
    /// Mean find rate.
    pub found: f64,
    /// Largest claimed confidence minus find rate of a single matrix.
    pub single_overclaim: f64,
    /// Lowest find rate of a single matrix.
    pub lowest: f64,
    /// Probability of a find rate as low as the lowest if the true one were just high enough.
    pub p_value: f64,
    /// Cost relative to the larger of the reference's cost and the lower bound; absent without the reference.
    pub cost: Option<f64>,
}

impl GroupGoals {
    fn new(row: &SelectRow, confidence: f64) -> GroupGoals {
        let overclaim = |matrix: &ReplayFigures| matrix.claimed - matrix.find_rate;
        let p_value = |matrix: &ReplayFigures| {
            let found = (matrix.find_rate * matrix.seeds as f64).round() as u64;
            binomial_tail(found, matrix.seeds, confidence - MAX_OVERCLAIM)
        };
        GroupGoals {
            group: row.matrix.clone(),
            matrices: row.matrices.len(),
            claimed: row.figures.claimed,
            found: row.figures.find_rate,
            single_overclaim: row.matrices.iter().map(overclaim).fold(f64::MIN, f64::max),
            lowest: row.lowest(),
            p_value: row.matrices.iter().map(p_value).fold(1.0, f64::min),
            cost: row.reference.map(|cost| row.figures.cost_share / cost.max(row.bound).max(1e-12)),
        }
    }

    /// Claimed confidence minus find rate.
    pub fn overclaim(&self) -> f64 {
        self.claimed - self.found
    }

    /// Returns the names of the columns whose goals are missed.
    pub fn missed(&self) -> Vec<&'static str> {
        let checks = [
            ("over", self.overclaim() > MAX_OVERCLAIM + 1e-9),
            ("worst", self.single_overclaim > MAX_SINGLE_OVERCLAIM + 1e-9),
            ("p", self.p_value < SIGNIFICANCE),
            ("cost", self.cost.is_some_and(|cost| cost > MAX_COST)),
        ];
        checks.into_iter().filter(|(_, is_missed)| *is_missed).map(|(name, _)| name).collect()
    }
}

/// Figures that have goals, for all groups.
#[derive(Debug, Clone)]
pub struct Goals {
    /// Figures by group.
    pub groups: Vec<GroupGoals>,
    /// Mean find rate of the groups; the goal is the required confidence.
    pub found: f64,
    /// Mean cost of the recorded groups relative to the reference; the goal is 1. Absent without recorded groups or
    /// without the reference.
    pub recorded_cost: Option<f64>,
}

/// Returns the figures of [`GOALS_OF`] at this required confidence; `None` if it was not measured.
pub fn goals(rows: &[SelectRow], confidence: f64) -> Option<Goals> {
    let own = || rows.iter().filter(|row| row.selector == GOALS_OF);
    let groups: Vec<GroupGoals> = own().map(|row| GroupGoals::new(row, confidence)).collect();
    let of_reference =
        |row: &SelectRow| row.reference.map(|cost| row.figures.cost_share / cost.max(1e-12));
    Some(Goals {
        found: mean(groups.iter().map(|group| group.found))?,
        groups,
        recorded_cost: mean(own().filter(|row| row.is_recorded).filter_map(of_reference)),
    })
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the probability of at most `found` successes in `trials` at this rate.
fn binomial_tail(found: u64, trials: u64, rate: f64) -> f64 {
    let odds = (rate / (1.0 - rate)).ln();
    let mut log_term = trials as f64 * (1.0 - rate).ln();
    let mut sum = log_term.exp();
    for count in 1..=found.min(trials) {
        log_term += ((trials - count + 1) as f64 / count as f64).ln() + odds;
        sum += log_term.exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of two matrices with 50 orders each.
    fn row(found: [f64; 2], claimed: f64, costs: (f64, f64, f64)) -> SelectRow {
        let figures = |find_rate: f64| ReplayFigures {
            find_rate,
            claimed,
            cost_share: costs.0,
            seeds: 50,
            ..ReplayFigures::default()
        };
        let matrices = found.map(figures).to_vec();
        SelectRow {
            matrix: "kind".to_owned(),
            is_recorded: true,
            figures: ReplayFigures::mean(&matrices),
            matrices,
            combos: 9,
            datapoints: 200,
            bound: costs.2,
            selector: GOALS_OF.to_owned(),
            has_confidence: true,
            reference: Some(costs.1),
            cpu_seconds: 0.0,
        }
    }

    #[test]
    fn binomial_tail_sums_exact_probabilities() {
        // Sums of comb(50, k)·0.92^k·0.08^(50 − k), computed in Python.
        let cases = [(39, 1.7077e-3), (38, 4.6590e-4), (50, 1.0)];
        for (found, expected) in cases {
            let tail = binomial_tail(found, 50, 0.92);
            assert!((tail / expected - 1.0).abs() < 1e-3, "{found}: {tail}");
        }
    }

    #[test]
    fn every_missed_goal_is_named() {
        let missed = |found, claimed, costs| {
            goals(&[row(found, claimed, costs)], 0.95).unwrap().groups[0].missed()
        };
        assert_eq!(missed([0.98, 0.9], 0.95, (0.5, 0.5, 0.2)), [""; 0]);
        assert_eq!(missed([0.96, 0.86], 0.95, (0.5, 0.5, 0.2)), ["over", "worst"]);
        assert_eq!(missed([1.0, 0.86], 0.95, (0.5, 0.5, 0.2)), ["worst"]);
        assert_eq!(missed([1.0, 0.76], 0.8, (0.5, 0.5, 0.2)), ["p"]);
        // The larger of the reference's cost and the bound counts.
        assert_eq!(missed([1.0, 1.0], 0.95, (0.71, 0.5, 0.2)), ["cost"]);
        assert_eq!(missed([1.0, 1.0], 0.95, (0.71, 0.5, 0.6)), [""; 0]);
    }

    #[test]
    fn only_recorded_groups_count_for_their_cost() {
        let recorded = row([1.0, 1.0], 0.95, (0.4, 0.5, 0.1));
        let generated = SelectRow { is_recorded: false, ..row([0.9, 0.9], 0.95, (0.6, 0.5, 0.1)) };
        let other = SelectRow { selector: "strict".to_owned(), ..recorded.clone() };
        let all = goals(&[recorded, generated, other], 0.95).unwrap();
        assert_eq!((all.groups.len(), all.recorded_cost), (2, Some(0.8)));
        assert!((all.found - 0.95).abs() < 1e-9);
        assert!(goals(&[], 0.95).is_none());
    }
}
