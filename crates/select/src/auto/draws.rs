//! Monte Carlo estimate of the probability that any rival is better than the leader.
//!
//! Rivals share the leader and some candidates, so the events overlap and the sum of their
//! probabilities is too large.

use super::normal::draw;
use super::rivals::Rivals;
use nalgebra::{DMatrix, DVector};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Number of draws; the standard error at 5 % is 0.7 %.
const DRAWS: usize = 1000;
/// Maximum number of rivals in the draws, and the minimum probability of each. The probabilities of the
/// others are added.
const MAX_RIVALS: usize = 60;
const MIN_PROBABILITY: f64 = 1e-4;

impl Rivals<'_> {
    /// Returns the probability that any rival is better by more than ε.
    ///
    /// Callers compare it with `alpha`, so nothing is drawn if the largest probability or the sum of all
    /// decides that comparison.
    pub(super) fn any_better(&self, alpha: f64) -> f64 {
        let mut probabilities: Vec<(usize, f64)> =
            (0..self.rivals.len()).map(|arm| (arm, self.better(arm))).collect();
        probabilities.sort_by(|one, other| other.1.total_cmp(&one.1));
        let sum: f64 = probabilities.iter().map(|(_, probability)| probability).sum();
        let is_close = |(_, probability): &&(usize, f64)| *probability > MIN_PROBABILITY;
        let close = probabilities.iter().take(MAX_RIVALS).take_while(is_close).count();
        let is_decided =
            probabilities.first().is_some_and(|first| first.1 > alpha) || sum <= 0.5 * alpha;
        if close < 2 || is_decided {
            return sum.min(1.0);
        }
        let rest: f64 = probabilities[close..].iter().map(|(_, probability)| probability).sum();
        let arms: Vec<usize> = probabilities[..close].iter().map(|(arm, _)| *arm).collect();
        let estimate = self.estimate(&arms).unwrap_or(1.0);
        (estimate + rest).max(probabilities[0].1).min(sum).min(1.0)
    }

    /// Estimates the probability that any of these rivals is better.
    fn estimate(&self, arms: &[usize]) -> Option<f64> {
        let lower = self.difference_covariance(arms).cholesky()?.unpack();
        // A fixed seed makes rounds comparable.
        let mut random = ChaCha8Rng::seed_from_u64(arms.len() as u64);
        let mut normals = DVector::<f64>::zeros(arms.len());
        let mut any_better = || {
            for (row, &arm) in arms.iter().enumerate() {
                let rival = &self.rivals[arm];
                normals[row] = draw(&mut random);
                let shared: f64 = (0..=row).map(|at| lower[(row, at)] * normals[at]).sum();
                let value = if random.random::<f64>() < rival.tail_probability {
                    rival.tail_gap + shared + rival.tail_extra.sqrt() * draw(&mut random)
                } else {
                    rival.gap + shared
                };
                if value > self.epsilon + 1e-9 {
                    return true;
                }
            }
            false
        };
        let hits = (0..DRAWS).filter(|_| any_better()).count();
        Some(hits as f64 / DRAWS as f64)
    }

    /// Covariance of the differences from the leader, scaled to the variances of the rivals.
    fn difference_covariance(&self, arms: &[usize]) -> DMatrix<f64> {
        let lead = self.posterior.covariance(self.leader, self.leader);
        let with: Vec<f64> =
            arms.iter().map(|&arm| self.posterior.covariance(arm, self.leader)).collect();
        let mut matrix = DMatrix::<f64>::zeros(arms.len(), arms.len());
        for (row, &one) in arms.iter().enumerate() {
            for (column, &other) in arms.iter().enumerate().take(row + 1) {
                let both = self.posterior.covariance(one, other);
                matrix[(row, column)] = both - with[row] - with[column] + lead;
                matrix[(column, row)] = matrix[(row, column)];
            }
        }
        let scale =
            |row: usize| (self.rivals[arms[row]].variance / matrix[(row, row)].max(1e-12)).sqrt();
        let scales: Vec<f64> = (0..arms.len()).map(scale).collect();
        for row in 0..arms.len() {
            for column in 0..arms.len() {
                matrix[(row, column)] *= scales[row] * scales[column];
            }
            matrix[(row, row)] = matrix[(row, row)] * 1.001 + 1e-10;
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use crate::auto::posterior::{Posterior, tests::small};
    use crate::auto::rivals::{Rival, Rivals};
    use crate::auto::tuning::AutoTuning;

    fn estimate(rivals: [Rival; 4]) -> f64 {
        let (data, design, scales) = small();
        let posterior = Posterior::new(&data, &design, &scales).unwrap();
        let mut all = Rivals::new(&posterior, &AutoTuning::default(), 0.01);
        all.rivals = rivals.to_vec();
        all.estimate(&[0, 1, 3]).unwrap()
    }

    #[test]
    fn single_rival_has_its_own_probability() {
        let none = Rival { gap: -9.0, variance: 0.01, ..Rival::default() };
        let one = Rival { gap: -0.19, variance: 0.01, ..Rival::default() };
        // Two standard deviations below ε: pnorm(-2) = 0.0228.
        assert!((estimate([one, none, none, none]) - 0.0228).abs() < 0.015);
        // From the tail with probability 0.2, centred at ε: half of that.
        let far = Rival { tail_probability: 0.2, tail_gap: 0.01, ..none };
        assert!((estimate([far, none, none, none]) - 0.1).abs() < 0.03);
    }

    #[test]
    fn overlapping_probabilities_are_below_their_sum() {
        let one = Rival { gap: -0.04, variance: 0.01, ..Rival::default() };
        // Half a standard deviation below ε: 0.3085 each, 0.669 together if they were independent.
        let three = estimate([one; 4]);
        assert!(three > 0.33 && three < 0.62, "{three}");
    }
}
