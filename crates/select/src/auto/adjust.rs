//! Means that can be compared although some combinations have seen less.
//!
//! `score = combination + difficulty of the datapoint + what each model makes of it + noise`. The
//! difficulties are random effects, fitted to everything that was seen. That makes it harmless that
//! those who were lucky at first are the ones who go on: their luck stays theirs, because the others
//! on the same datapoints tell what the datapoints were like. (Regressing on those who went furthest
//! takes their fall back to normal for harder datapoints, and pulls down everybody who waits.)

use super::table::Table;
use crate::space::Space;

/// Sweeps of the fit a round; the next starts from where this one ended.
const SWEEPS: usize = 4;
/// What the variances are drawn to, and with how many datapoints' weight.
const UNKNOWN: f64 = 0.05;
const UNKNOWN_WEIGHT: f64 = 2.0;

/// A combination's mean, as if all had seen the same.
#[derive(Debug, Clone)]
pub(super) struct Adjusted {
    pub(super) mean: f64,
    /// What the datapoints leave of each score; NaN where it errored.
    pub(super) residuals: Vec<f64>,
}

/// Effects of datapoints that some combinations have in common.
#[derive(Debug)]
struct Shared {
    /// Which group each combination belongs to.
    group: Vec<usize>,
    /// For each group, an effect on each datapoint.
    effects: Vec<Vec<f64>>,
    variance: f64,
}

/// The fit.
#[derive(Debug)]
pub(super) struct Difficulty {
    means: Vec<f64>,
    shared: Vec<Shared>,
    noise: f64,
}

impl Difficulty {
    pub(super) fn new(space: &Space) -> Difficulty {
        let arms = space.combos();
        let shared = |group: Vec<usize>, groups: usize| Shared {
            group,
            effects: vec![Vec::new(); groups],
            variance: UNKNOWN,
        };
        let mut all = vec![shared(vec![0; arms], 1)];
        if space.roles().len() > 1 {
            for (place, role) in space.roles().iter().enumerate() {
                let group = (0..arms).map(|arm| space.members(arm)[place] as usize).collect();
                all.push(shared(group, role.candidates.len()));
            }
        }
        Difficulty { means: vec![0.5; arms], shared: all, noise: 2.0 * UNKNOWN }
    }

    /// Fits everything that was seen. Also says how deep the deepest are.
    pub(super) fn adjust(&mut self, table: &Table) -> (Vec<Adjusted>, usize) {
        let front = (0..table.arms()).map(|arm| table.depth(arm)).max().unwrap_or(0);
        for shared in &mut self.shared {
            shared.effects.iter_mut().for_each(|effects| effects.resize(front, 0.0));
        }
        let mut rest: Vec<Vec<f64>> = (0..table.arms()).map(|arm| self.rest(table, arm)).collect();
        for _ in 0..SWEEPS {
            for shared in &mut self.shared {
                shared.sweep(&mut rest, self.noise);
            }
            let (mut sum, mut count) = (0.0, 0.0);
            for (arm, rest) in rest.iter().enumerate() {
                let cells = rest.iter().zip(table.row(arm)).filter(|(rest, _)| !rest.is_nan());
                for (rest, value) in cells {
                    sum += rest * (value - self.means[arm]);
                    count += 1.0;
                }
            }
            // What is left, times what there was, has the noise as its mean; what is left squared has
            // less, because the effects have taken up some of it.
            let cells = (count - self.means.len() as f64).max(0.5 * count);
            self.noise = ((sum + UNKNOWN) / (cells + 1.0)).max(1e-3);
            for (mean, rest) in self.means.iter_mut().zip(&mut rest) {
                let shift = mean_of(rest);
                *mean += shift;
                rest.iter_mut().for_each(|value| *value -= shift);
            }
        }
        let adjusted = self.means.iter().zip(rest);
        let adjusted = adjusted.map(|(&mean, residuals)| Adjusted { mean, residuals });
        (adjusted.collect(), front)
    }

    fn rest(&self, table: &Table, arm: usize) -> Vec<f64> {
        let cells = table.row(arm).iter().enumerate();
        let told = |at: usize| -> f64 {
            self.shared.iter().map(|shared| shared.effects[shared.group[arm]][at]).sum()
        };
        cells.map(|(at, value)| value - self.means[arm] - told(at)).collect()
    }
}

impl Shared {
    /// Moves the effects to their expectation, given everything else.
    fn sweep(&mut self, rest: &mut [Vec<f64>], noise: f64) {
        let front = self.effects[0].len();
        let mut sums = vec![vec![(0.0, 0.0); front]; self.effects.len()];
        for (rest, &group) in rest.iter().zip(&self.group) {
            for (sum, value) in sums[group].iter_mut().zip(rest) {
                if !value.is_nan() {
                    *sum = (sum.0 + value, sum.1 + 1.0);
                }
            }
        }
        let (mut squares, mut count) = (0.0, 0.0);
        for (effects, sums) in self.effects.iter_mut().zip(&mut sums) {
            for (effect, sum) in effects.iter_mut().zip(sums) {
                if sum.1 == 0.0 {
                    continue;
                }
                let precision = sum.1 / noise + 1.0 / self.variance;
                let moved = (sum.0 + sum.1 * *effect) / noise / precision;
                sum.0 = moved - *effect;
                *effect = moved;
                squares += moved * moved + 1.0 / precision;
                count += 1.0;
            }
        }
        // Over what was seen they make no difference, so that the mean of one that has seen it all is
        // the mean of its scores.
        for (effects, sums) in self.effects.iter_mut().zip(&mut sums) {
            let seen = sums.iter().filter(|sum| sum.1 > 0.0).count().max(1) as f64;
            let pairs = effects.iter().zip(sums.iter()).filter(|(_, sum)| sum.1 > 0.0);
            let middle = pairs.map(|(effect, _)| effect).sum::<f64>() / seen;
            for (effect, sum) in effects.iter_mut().zip(sums).filter(|(_, sum)| sum.1 > 0.0) {
                *effect -= middle;
                sum.0 -= middle;
            }
        }
        self.variance = ((squares + UNKNOWN_WEIGHT * UNKNOWN) / (count + UNKNOWN_WEIGHT)).max(1e-5);
        for (rest, &group) in rest.iter_mut().zip(&self.group) {
            for (value, (shift, count)) in rest.iter_mut().zip(&sums[group]) {
                if *count > 0.0 {
                    *value -= shift;
                }
            }
        }
    }
}

/// The mean of what is there; 0 when nothing is.
pub(super) fn mean_of(values: &[f64]) -> f64 {
    let there = values.iter().filter(|value| !value.is_nan());
    let (sum, count) = there.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}
