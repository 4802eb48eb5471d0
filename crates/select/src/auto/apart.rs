//! What combinations have to themselves, and what those who share a model have in common.

use super::spread::{Spread, pool};
use super::table::Table;
use crate::space::{Role, Space};

/// What is left of the scores when combinations and datapoints are taken out.
pub(super) struct Apart {
    rows: Vec<Vec<f64>>,
}

impl Apart {
    pub(super) fn new(table: &Table, means: &[f64], front: usize) -> Apart {
        let mut columns = vec![(0.0, 0.0); front];
        for (arm, mean) in means.iter().enumerate() {
            for (column, value) in columns.iter_mut().zip(table.row(arm)) {
                if !value.is_nan() {
                    *column = (column.0 + value - mean, column.1 + 1.0);
                }
            }
        }
        let row = |(arm, mean): (usize, &f64)| {
            let cells = table.row(arm).iter().zip(&columns);
            // A column of few has little left of them: made up for, and a column of one is no use.
            let rest = |(value, (sum, count)): (&f64, &(f64, f64))| {
                if *count < 2.0 {
                    f64::NAN
                } else {
                    (value - mean - sum / count) * (count / (count - 1.0)).sqrt()
                }
            };
            cells.map(rest).collect()
        };
        Apart { rows: means.iter().enumerate().map(row).collect() }
    }

    pub(super) fn variances(&self, unknown: f64) -> Vec<f64> {
        let spreads: Vec<Spread> =
            self.rows.iter().map(|row| Spread::of(row.iter().copied())).collect();
        let pooled = pool(spreads.iter(), unknown);
        let mut sorted: Vec<f64> = spreads.iter().map(|spread| spread.drawn_to(pooled)).collect();
        sorted.sort_by(f64::total_cmp);
        let high = sorted.get(sorted.len() * 4 / 5).copied().unwrap_or(pooled).max(pooled);
        spreads.iter().map(|spread| spread.drawn_to(high)).collect()
    }

    /// The sampling variance of each effect, from how the mean of those who share it spreads over
    /// the datapoints.
    pub(super) fn role_noise(
        &self,
        space: &Space,
        depths: &[usize],
        total: usize,
        unknown: f64,
    ) -> Vec<Vec<f64>> {
        if space.roles().len() < 2 {
            return Vec::new();
        }
        let front = depths.iter().copied().max().unwrap_or(0);
        let of_role = |(place, role): (usize, &Role)| {
            let mut sums = vec![vec![(0.0, 0.0); front]; role.candidates.len()];
            let mut depth = vec![(0.0, 0.0); role.candidates.len()];
            for (arm, row) in self.rows.iter().enumerate() {
                let member = space.members(arm)[place] as usize;
                depth[member] = (depth[member].0 + depths[arm] as f64, depth[member].1 + 1.0);
                for (sum, value) in sums[member].iter_mut().zip(row) {
                    if !value.is_nan() {
                        *sum = (sum.0 + value, sum.1 + 1.0);
                    }
                }
            }
            let spreads: Vec<Spread> = sums
                .iter()
                .map(|sums| Spread::of(sums.iter().map(|(sum, count)| sum / count)))
                .collect();
            let pooled = pool(spreads.iter(), unknown);
            let noise = spreads.iter().zip(&depth).map(|(spread, (sum, count))| {
                let depth = sum / f64::max(*count, 1.0);
                spread.drawn_to(pooled) * (1.0 / depth.max(1.0) - 1.0 / total as f64).max(0.0)
            });
            noise.collect()
        };
        space.roles().iter().enumerate().map(of_role).collect()
    }
}
