//! The chance that anybody is better than the leader. Rivals share the leader, and models with each
//! other, so that their chances overlap: added up they would say too much.

use super::normal::draw;
use super::rivals::Rivals;
use nalgebra::{DMatrix, DVector};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Draws: 5 % is told to within 0.7 %.
const DRAWS: usize = 1000;
/// Who takes part in them: so many at most, with chances above this. The others are added.
const MOST: usize = 60;
const LEAST: f64 = 1e-4;

impl Rivals<'_> {
    /// Chance that anybody is better by more than ε. Only whether it is above `enough` matters, so
    /// that nothing is drawn where the largest chance or the sum of all settles that.
    pub(super) fn anybody(&self, enough: f64) -> f64 {
        let mut chances: Vec<(usize, f64)> =
            (0..self.rivals.len()).map(|arm| (arm, self.better(arm))).collect();
        chances.sort_by(|one, other| other.1.total_cmp(&one.1));
        let sum: f64 = chances.iter().map(|(_, chance)| chance).sum();
        let close = chances.iter().take(MOST).take_while(|(_, chance)| *chance > LEAST).count();
        let settled = chances.first().is_some_and(|first| first.1 > enough) || sum <= 0.5 * enough;
        if close < 2 || settled {
            return sum.min(1.0);
        }
        let rest: f64 = chances[close..].iter().map(|(_, chance)| chance).sum();
        let arms: Vec<usize> = chances[..close].iter().map(|(arm, _)| *arm).collect();
        let drawn = self.drawn(&arms).unwrap_or(1.0);
        (drawn + rest).max(chances[0].1).min(sum).min(1.0)
    }

    fn drawn(&self, arms: &[usize]) -> Option<f64> {
        let lower = self.spread(arms).cholesky()?.unpack();
        // The same draws each time, so that rounds can be compared.
        let mut random = ChaCha8Rng::seed_from_u64(arms.len() as u64);
        let mut fresh = DVector::<f64>::zeros(arms.len());
        let mut hit = || {
            for (row, &arm) in arms.iter().enumerate() {
                let rival = &self.rivals[arm];
                fresh[row] = draw(&mut random);
                let shared: f64 = (0..=row).map(|at| lower[(row, at)] * fresh[at]).sum();
                let value = if random.random::<f64>() < rival.far {
                    rival.far_gap + shared + rival.far_extra.sqrt() * draw(&mut random)
                } else {
                    rival.gap + shared
                };
                if value > self.epsilon + 1e-9 {
                    return true;
                }
            }
            false
        };
        let hits = (0..DRAWS).filter(|_| hit()).count();
        Some(hits as f64 / DRAWS as f64)
    }

    /// Covariance of the differences from the leader, with the variances that rivals are thought to
    /// have.
    fn spread(&self, arms: &[usize]) -> DMatrix<f64> {
        let lead = self.now.covariance(self.leader, self.leader);
        let with: Vec<f64> =
            arms.iter().map(|&arm| self.now.covariance(arm, self.leader)).collect();
        let mut matrix = DMatrix::<f64>::zeros(arms.len(), arms.len());
        for (row, &one) in arms.iter().enumerate() {
            for (column, &other) in arms.iter().enumerate().take(row + 1) {
                let both = self.now.covariance(one, other);
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
    use crate::auto::tuning::Tuning;

    fn drawn(rivals: [Rival; 4]) -> f64 {
        let (seen, design, scales) = small();
        let now = Posterior::new(&seen, &design, &scales).unwrap();
        let mut all = Rivals::new(&now, &Tuning::default(), 0.01);
        all.rivals = rivals.to_vec();
        all.drawn(&[0, 1, 3]).unwrap()
    }

    #[test]
    fn one_alone_has_its_own_chance() {
        let none = Rival { gap: -9.0, variance: 0.01, ..Rival::default() };
        let one = Rival { gap: -0.19, variance: 0.01, ..Rival::default() };
        // Two standard deviations below ε: pnorm(-2) = 0.0228.
        assert!((drawn([one, none, none, none]) - 0.0228).abs() < 0.015);
        // From the tail, at 0.01 and as wide, with a chance of 0.2: half of them.
        let far = Rival { far: 0.2, far_gap: 0.01, ..none };
        assert!((drawn([far, none, none, none]) - 0.1).abs() < 0.03);
    }

    #[test]
    fn chances_that_overlap_are_less_than_their_sum() {
        let one = Rival { gap: -0.04, variance: 0.01, ..Rival::default() };
        // Half a standard deviation below ε: 0.3085 each, 0.669 together if they were independent.
        let three = drawn([one; 4]);
        assert!(three > 0.33 && three < 0.62, "{three}");
    }
}
