//! Means that can be compared although some combinations have seen less.
//!
//! What the deepest have seen is a control variate for the others: who has had the easier
//! datapoints is told from how the deep ones did on them.

use super::table::Table;
use crate::space::Space;

/// Where slopes are drawn to, and with how many observations' weight.
const SLOPES: [f64; 2] = [0.8, 0.5];
const SLOPE_WEIGHT: f64 = 3.0;

/// A combination's mean over what the deepest have seen.
#[derive(Debug, Clone)]
pub(super) struct Adjusted {
    pub(super) mean: f64,
    /// What the control variates leave of each score; NaN where it errored.
    pub(super) residuals: Vec<f64>,
}

/// Adjusts all combinations. Also says how deep the deepest are.
pub(super) fn adjust(space: &Space, table: &Table) -> (Vec<Adjusted>, usize) {
    let arms = table.arms();
    let front = (0..arms).map(|arm| table.depth(arm)).max().unwrap_or(0);
    let deep: Vec<usize> = (0..arms).filter(|&arm| table.depth(arm) == front).collect();
    let plain = weighted(table, &deep, front, |_| 1.0);
    let one = |arm: usize| {
        if table.depth(arm) == front {
            return centred(table.row(arm));
        }
        let siblings = weighted(table, &deep, front, |other| shared(space, arm, other).powi(2));
        let kin: Vec<f64> = (siblings.iter().zip(&plain))
            .map(|(kin, all)| if kin.is_nan() { 0.0 } else { kin - all })
            .collect();
        lagging(table.row(arm), [&plain, &kin])
    };
    ((0..arms).map(one).collect(), front)
}

/// In how many roles two combinations have the same candidate.
fn shared(space: &Space, one: usize, other: usize) -> f64 {
    let pairs = space.members(one).iter().zip(space.members(other));
    pairs.filter(|(one, other)| one == other).count() as f64
}

/// The weighted mean of some rows at each datapoint; NaN where there is none.
fn weighted(table: &Table, arms: &[usize], to: usize, weight: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); to];
    for &arm in arms {
        let weight = weight(arm);
        if weight == 0.0 {
            continue;
        }
        for (sum, value) in sums.iter_mut().zip(table.row(arm)) {
            if !value.is_nan() {
                *sum = (sum.0 + weight * value, sum.1 + weight);
            }
        }
    }
    sums.into_iter().map(|(sum, weight)| sum / weight).collect()
}

fn centred(row: &[f64]) -> Adjusted {
    let mean = mean_of(row);
    Adjusted { mean, residuals: row.iter().map(|value| value - mean).collect() }
}

fn lagging(row: &[f64], controls: [&[f64]; 2]) -> Adjusted {
    let seen: Vec<usize> =
        (0..row.len()).filter(|&at| !row[at].is_nan() && !controls[0][at].is_nan()).collect();
    if seen.len() < 2 {
        return centred(row);
    }
    let count = seen.len() as f64;
    let over = |values: &[f64]| seen.iter().map(|&at| values[at]).sum::<f64>() / count;
    let (mean, near) = (over(row), controls.map(&over));
    let product = |left: &[f64], left_mean: f64, right: &[f64], right_mean: f64| -> f64 {
        seen.iter().map(|&at| (left[at] - left_mean) * (right[at] - right_mean)).sum()
    };
    let [first, second] = controls;
    let square =
        [product(first, near[0], first, near[0]), product(second, near[1], second, near[1])];
    let cross = product(first, near[0], second, near[1]);
    let ridge = square.map(|square| SLOPE_WEIGHT * square / (count - 1.0) + 1e-9);
    let right = [
        product(first, near[0], row, mean) + ridge[0] * SLOPES[0],
        product(second, near[1], row, mean) + ridge[1] * SLOPES[1],
    ];
    let (a, b) = (square[0] + ridge[0], square[1] + ridge[1]);
    let determinant = a * b - cross * cross;
    let slopes = [
        (b * right[0] - cross * right[1]) / determinant,
        (a * right[1] - cross * right[0]) / determinant,
    ];
    let moved = |part: usize| slopes[part] * (mean_of(controls[part]) - near[part]);
    let residual = |at: usize| {
        let told = |part: usize| slopes[part] * (controls[part][at] - near[part]);
        let value = row[at] - mean - told(0) - told(1);
        // A datapoint on which all of the deep ones errored tells nothing.
        if controls[0][at].is_nan() { row[at] - mean } else { value }
    };
    Adjusted { mean: mean + moved(0) + moved(1), residuals: (0..row.len()).map(residual).collect() }
}

/// The mean of what is there; a half when nothing is.
pub(super) fn mean_of(values: &[f64]) -> f64 {
    let (sum, count) = values
        .iter()
        .filter(|value| !value.is_nan())
        .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.5 }
}
