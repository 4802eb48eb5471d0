//! Lower bound on the cost of any method.
//!
//! To be correct with probability 95 % on a matrix and on the one where a rival is better than the winner by ε,
//! `1 / (σ²·(1/n − 1/N))·(Δ + ε)²/2` must be at least kl(0.95, 0.05), where σ² is the variance of the rival that
//! the winner, the difficulty and related combinations do not explain. This is an approximation by normal
//! distributions, not a theorem.

use super::matrix::Matrix;

/// Twice kl(0.95, 0.05).
const TWICE_DIVERGENCE: f64 = 5.3;

/// Returns the lower bound of the cost as a share of the total cost.
pub fn lower_bound(matrix: &Matrix, epsilon: f64) -> f64 {
    let (truth, costs) = (matrix.truth(), matrix.costs());
    let total_cost: f64 = costs.iter().sum();
    let best = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Of equally good combinations, the cheapest one would remain.
    let winner = (0..truth.len())
        .filter(|&arm| truth[arm] >= best)
        .min_by(|&left, &right| costs[left].total_cmp(&costs[right]));
    let Some(winner) = winner else { return 0.0 };
    let rows = impute(matrix, &truth);
    let total = rows[0].len() as f64;
    let share = |gap: f64, variance: f64| {
        let needed =
            1.0 / (1.0 / total + (gap + epsilon).powi(2) / (TWICE_DIVERGENCE * variance.max(1e-9)));
        needed / total
    };
    let mut cost = 0.0;
    let mut nearest = f64::INFINITY;
    for arm in (0..truth.len()).filter(|&arm| arm != winner && truth[arm].is_finite()) {
        let gap = best - truth[arm];
        nearest = nearest.min(gap);
        cost += costs[arm] * share(gap, unexplained_variance(matrix, &rows, arm, Some(winner)));
    }
    if nearest.is_finite() {
        cost += costs[winner] * share(nearest, unexplained_variance(matrix, &rows, winner, None));
    }
    if total_cost > 0.0 { cost / total_cost } else { 0.0 }
}

/// Returns the scores, with the row's mean for missing ones.
fn impute(matrix: &Matrix, truth: &[f64]) -> Vec<Vec<f64>> {
    let rows = matrix.cells.iter().zip(truth);
    rows.map(|(row, mean)| row.iter().map(|cell| cell.score.unwrap_or(*mean)).collect()).collect()
}

/// Returns the variance of a row that is not explained by the winner, the mean of the others and the mean of those
/// that share a model with it.
fn unexplained_variance(
    matrix: &Matrix,
    rows: &[Vec<f64>],
    arm: usize,
    winner: Option<usize>,
) -> f64 {
    let shared = |other: usize| {
        let pairs = matrix.space.members(arm).iter().zip(matrix.space.members(other));
        pairs.filter(|(mine, theirs)| mine == theirs).count() as f64
    };
    let mut regressors: Vec<Vec<f64>> = Vec::new();
    regressors.extend(winner.map(|winner| rows[winner].clone()));
    let others = || (0..rows.len()).filter(|&other| other != arm);
    regressors.push(weighted_mean(rows, others().map(|other| (other, 1.0))));
    if others().any(|other| shared(other) > 0.0) {
        regressors.push(weighted_mean(rows, others().map(|other| (other, shared(other).powi(2)))));
    }
    residual_variance(&rows[arm], &regressors)
}

fn weighted_mean(rows: &[Vec<f64>], weights: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut sum = vec![0.0; rows[0].len()];
    let mut total = 0.0;
    for (row, weight) in weights.filter(|(_, weight)| *weight > 0.0) {
        total += weight;
        sum.iter_mut().zip(&rows[row]).for_each(|(sum, value)| *sum += weight * value);
    }
    sum.iter().map(|sum| sum / f64::max(total, 1e-12)).collect()
}

/// Returns the variance after regression on the regressors (Gram–Schmidt).
fn residual_variance(row: &[f64], regressors: &[Vec<f64>]) -> f64 {
    let centred = |row: &[f64]| {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        row.iter().map(|value| value - mean).collect::<Vec<f64>>()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut rest = centred(row);
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for regressor in regressors {
        let mut direction = centred(regressor);
        let before = dot(&direction, &direction);
        for known in &basis {
            let slope = dot(&direction, known);
            direction.iter_mut().zip(known).for_each(|(value, known)| *value -= slope * known);
        }
        let length = dot(&direction, &direction);
        if length <= 1e-9 * before.max(1e-12) {
            continue;
        }
        direction.iter_mut().for_each(|value| *value /= length.sqrt());
        let slope = dot(&rest, &direction);
        rest.iter_mut().zip(&direction).for_each(|(value, known)| *value -= slope * known);
        basis.push(direction);
    }
    let freedom = row.len().saturating_sub(basis.len() + 1).max(1);
    dot(&rest, &rest) / freedom as f64
}
