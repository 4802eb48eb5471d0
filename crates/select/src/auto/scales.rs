//! Variances of the model, fitted to the data with some weight on their priors.
//!
//! Variances never start at zero, and a few datapoints cannot bring them there: if all first scores are
//! equal, a rule that trusted its own variances would stop at once.

use super::data::ModelData;
use super::design::Design;
use super::posterior::Posterior;
use super::tuning::AutoTuning;
use nalgebra::DVector;

/// Variances of the model, and the linearisation of its curve.
#[derive(Debug, Clone)]
pub(super) struct Scales {
    /// Variance of a datapoint's difficulty, then of the datapoint-specific values of each role.
    pub(super) shared: Vec<f64>,
    /// Variance of the effects; the first is that of the overall level.
    pub(super) effects: Vec<f64>,
    /// Prior variance of an own effect.
    pub(super) prior_own: f64,
    /// Variance of a typical own effect where the curve is steepest.
    pub(super) typical: f64,
    /// Variance of the own effect of each combination.
    pub(super) own: Vec<f64>,
    /// Probability that the own effect of each combination is from the tail.
    pub(super) tail_probability: Vec<f64>,
    /// Noise variance of a cell.
    pub(super) noise: f64,
    /// Factor of the noise variance of each combination.
    pub(super) noise_factor: Vec<f64>,
    /// Linearisation of a curve that flattens near the scores 0 and 1: `θ = base + slope·effects + own`.
    pub(super) base: Vec<f64>,
    pub(super) slope: Vec<f64>,
    pub(super) tuning: AutoTuning,
}

/// Prior variances: those of pass/fail scores, divided among the parts.
const PRIOR_SHARED: f64 = 0.05;
const PRIOR_NOISE: f64 = 0.1;
pub(super) const PRIOR_EFFECT: f64 = 0.01;

impl Scales {
    pub(super) fn new(design: &Design, arms: usize, tuning: AutoTuning) -> Scales {
        let mut effects = vec![PRIOR_EFFECT; design.families];
        effects[0] = 1.0;
        // With one role, own effects are those of its candidates.
        let prior_own =
            if design.families > 1 { tuning.own_deviation } else { tuning.single_role_deviation }
                .powi(2);
        Scales {
            shared: vec![PRIOR_SHARED; design.families],
            effects,
            prior_own,
            typical: prior_own,
            own: vec![prior_own; arms],
            tail_probability: vec![tuning.tail.0; arms],
            noise: PRIOR_NOISE,
            noise_factor: vec![1.0; arms],
            base: vec![0.0; arms],
            slope: vec![1.0; arms],
            tuning,
        }
    }

    /// Noise variance of a combination's cells.
    pub(super) fn noise_of(&self, arm: usize) -> f64 {
        self.noise * self.noise_factor[arm]
    }

    /// Returns the scales after one fitting step.
    pub(super) fn refit(
        &self,
        data: &ModelData,
        design: &Design,
        posterior: &Posterior<'_>,
    ) -> Scales {
        let mut next = self.clone();
        next.fit_datapoints(data, design, posterior);
        next.fit_effects(design, posterior);
        if data.is_bounded() {
            next.fit_slopes(design, posterior);
            next.fit_noise_factor(data, posterior);
        }
        next.fit_own(posterior);
        next
    }

    /// Fits the variances of difficulties, datapoint-specific values and noise: expected squares over the
    /// effective number of observations.
    fn fit_datapoints(&mut self, data: &ModelData, design: &Design, posterior: &Posterior<'_>) {
        let columns = design.columns();
        let mut known = vec![0.0; design.families];
        let mut sums = vec![(0.0, 0.0, 0.0); columns];
        let (mut noise, mut cells) = (0.0, 0.0);
        let front = data.blocks.last().map_or(1.0, |block| block.to as f64);
        let freedom = (front - 1.0).max(0.5) / front;
        for (number, block) in data.blocks.iter().enumerate() {
            let covariance = posterior.datapoint_covariance(number);
            for column in 0..columns {
                let family = design.family[column];
                let share = 1.0 - covariance[(column, column)] / self.shared[family];
                known[family] += block.len() * share * freedom;
                cells -= block.len() * share;
            }
            for at in block.from..block.to {
                let mut weighted = DVector::<f64>::zeros(columns);
                for &arm in &block.arms {
                    let gap = data.rows[arm][at] - posterior.theta[arm];
                    let weight = gap * data.present[arm] / self.noise_of(arm);
                    design.loads[arm].iter().for_each(|&column| weighted[column] += weight);
                }
                let latent = covariance * weighted;
                for (column, sum) in sums.iter_mut().enumerate() {
                    if covariance[(column, column)] < 0.999 * self.shared[design.family[column]] {
                        sum.0 += 1.0;
                        sum.1 += latent[column];
                        sum.2 += latent[column] * latent[column];
                    }
                }
                for &arm in &block.arms {
                    let explained: f64 =
                        design.loads[arm].iter().map(|&column| latent[column]).sum();
                    let residual = data.rows[arm][at] - posterior.theta[arm] - explained;
                    noise += residual * residual / self.noise_factor[arm];
                    cells += data.present[arm];
                }
            }
        }
        // About their mean: a common error in the estimates would look like variance, and a larger variance
        // would allow a larger common error.
        let mut squares = vec![0.0; design.families];
        for (column, (count, sum, square)) in sums.into_iter().enumerate() {
            squares[design.family[column]] += (square - sum * sum / f64::max(count, 1.0)).max(0.0);
        }
        // The estimated own effects use up degrees of freedom of the noise.
        let explained = |arm: usize| 1.0 - posterior.own_variance[arm] / self.own[arm];
        let used: f64 = (0..posterior.own.len()).map(explained).sum();
        cells = f64::max(cells - used.max(0.0), 1.0);
        let weight = self.tuning.prior_datapoints;
        for family in 0..design.families {
            let sum = squares[family] + weight * PRIOR_SHARED;
            self.shared[family] = (sum / (known[family].max(0.0) + weight)).clamp(1e-4, 1e3);
        }
        self.noise = ((noise + weight * PRIOR_NOISE) / (cells + weight)).clamp(1e-4, 1e3);
    }

    /// Fits the noise factors: scores near 0 or 1 vary less, as pass/fail scores do. A minimum variance
    /// remains, because the next score can always differ.
    fn fit_noise_factor(&mut self, data: &ModelData, posterior: &Posterior<'_>) {
        let shape = |mean: f64| (mean * (1.0 - mean)).max(self.tuning.min_score_variance);
        let shapes: Vec<f64> =
            posterior.means.iter().map(|mean| shape(mean.clamp(0.0, 1.0))).collect();
        let weights: Vec<f64> = data.rows.iter().map(|row| row.len() as f64).collect();
        let sum: f64 = shapes.iter().zip(&weights).map(|(shape, weight)| shape * weight).sum();
        let pooled = sum / weights.iter().sum::<f64>().max(1.0);
        self.noise_factor = shapes.iter().map(|shape| shape / pooled.max(1e-9)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::grid;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn fitted(rows: Vec<Vec<f64>>, steps: usize) -> Scales {
        let (count, total) = (rows.len(), 200);
        let design = Design::new(&grid(&[count], total));
        let data = ModelData::of(total, rows, vec![1.0; count]);
        let mut scales = Scales::new(&design, count, AutoTuning::default());
        for _ in 0..steps {
            let posterior = Posterior::new(&data, &design, &scales).unwrap();
            scales = scales.refit(&data, &design, &posterior);
        }
        scales
    }

    #[test]
    fn six_passes_leave_uncertainty() {
        let scales = fitted(vec![vec![1.0; 6]; 3], 30);
        // Almost no variation was observed, so the prior remains with a weight of 4 against about 6
        // datapoints and 15 cells.
        assert!(scales.shared[0] > 0.015, "{:?}", scales.shared);
        assert!(scales.noise_of(0) > 0.01, "{}", scales.noise);
    }

    #[test]
    fn difficulty_and_noise_are_separated() {
        // Random difficulties of ±0.3 and noise of ±0.1: variances of 0.09 and 0.01.
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut sign = || if random.random::<bool>() { 1.0 } else { -1.0 };
        let hard: Vec<f64> = (0..60).map(|_| 0.5 + 0.3 * sign()).collect();
        let mut row = || hard.iter().map(|hard| hard + 0.1 * sign()).collect();
        let rows = (0..8).map(|_| row()).collect();
        let scales = fitted(rows, 30);
        assert!((scales.shared[0] - 0.09).abs() < 0.02, "{:?}", scales.shared);
        assert!((scales.noise - 0.0117).abs() < 0.001, "{}", scales.noise);
    }

    #[test]
    fn scores_near_the_limits_vary_less_but_above_the_minimum() {
        let design = Design::new(&grid(&[2], 4));
        let rows = vec![vec![1.0; 4], vec![1.0, 0.0, 1.0, 0.0]];
        let data = ModelData::of(4, rows, vec![1.0; 2]);
        let before = Scales::new(&design, 2, AutoTuning::default());
        let mut scales = before.clone();
        let posterior = Posterior::new(&data, &design, &before).unwrap();
        scales.fit_noise_factor(&data, &posterior);
        // Complete rows have the means 1 and 0.5: variances 0.03, the minimum, and 0.25; 0.14 on average.
        assert!((scales.noise_factor[0] - 0.03 / 0.14).abs() < 1e-9, "{:?}", scales.noise_factor);
        assert!((scales.noise_factor[1] - 0.25 / 0.14).abs() < 1e-9, "{:?}", scales.noise_factor);
    }
}
