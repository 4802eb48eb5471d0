//! Gaussian process over combinations, which predicts the value of unevaluated ones.
//!
//! The kernel depends on the roles in which two combinations differ: k(x, y) = s²·exp(−mean over roles
//! of \[x ≠ y\]/ℓ). Each role has its own length ℓ, which is long for a role that makes no difference.
//! The mean and s² are the maximum-likelihood estimates given the lengths and the noise.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
use statrs::function::erf::erfc;
use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// Parameters of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KernelShape {
    /// Length for each role: the shorter, the more its candidate matters.
    pub(crate) lengths: Vec<f64>,
    /// Variance of the observation noise, as a share of s².
    pub(crate) noise: f64,
}

/// A process fitted to observed combinations.
#[derive(Debug, Clone)]
pub(crate) struct GaussianProcess {
    shape: KernelShape,
    points: Vec<Vec<u32>>,
    factor: Cholesky<f64, Dyn>,
    weights: DVector<f64>,
    /// Constant mean and s² of the standardised values.
    mean: f64,
    variance: f64,
    /// Centre and scale used to standardise the values.
    centre: f64,
    scale: f64,
    log_likelihood: f64,
}

impl KernelShape {
    /// Prior mode: a change of one role leaves a correlation of e^(−1/2).
    fn prior_mode(roles: usize) -> KernelShape {
        KernelShape { lengths: vec![2.0 / roles.max(1) as f64; roles], noise: 0.01 }
    }

    fn kernel(&self, one: &[u32], two: &[u32]) -> f64 {
        let parts = self.lengths.iter().zip(one.iter().zip(two));
        let distance: f64 =
            parts.map(|(length, (one, two))| if one == two { 0.0 } else { 1.0 / length }).sum();
        (-distance / self.lengths.len().max(1) as f64).exp()
    }

    /// Log prior density up to a constant. Without it, absurd lengths explain a few points best.
    fn log_prior(&self) -> f64 {
        let mode = KernelShape::prior_mode(self.lengths.len());
        let term = |value: f64, mode: f64, spread: f64| {
            let distance = (value / mode).ln() / spread;
            -0.5 * distance * distance
        };
        let lengths = self.lengths.iter().zip(&mode.lengths);
        lengths.map(|(length, mode)| term(*length, *mode, 1.0)).sum::<f64>()
            + term(self.noise, mode.noise, 2.0)
    }

    /// Returns the shape with the highest posterior density, found by deterministic coordinate search
    /// without derivatives.
    pub(crate) fn most_likely(points: &[Vec<u32>], values: &[f64]) -> KernelShape {
        let roles = points.first().map_or(0, Vec::len);
        let mut best = KernelShape::prior_mode(roles);
        let density = |shape: &KernelShape| {
            GaussianProcess::new(points.to_vec(), values, shape.clone())
                .map_or(f64::NEG_INFINITY, |process| process.log_likelihood + shape.log_prior())
        };
        let mut best_density = density(&best);
        // Multiplicative steps, from coarse to fine.
        for step in [8.0_f64, 2.0, 1.4] {
            for coordinate in 0..=roles {
                let from = best.clone();
                for factor in [step.powi(-2), step.recip(), step, step.powi(2)] {
                    let mut shape = from.clone();
                    match shape.lengths.get_mut(coordinate) {
                        Some(length) => *length = (*length * factor).clamp(1e-3, 1e3),
                        None => shape.noise = (shape.noise * factor).clamp(1e-6, 10.0),
                    }
                    let found = density(&shape);
                    if found > best_density {
                        (best, best_density) = (shape, found);
                    }
                }
            }
        }
        best
    }
}

impl GaussianProcess {
    /// Fits a process; `None` without points, or if the covariance is singular even with jitter.
    pub(crate) fn new(
        points: Vec<Vec<u32>>,
        values: &[f64],
        shape: KernelShape,
    ) -> Option<GaussianProcess> {
        let count = points.len();
        if count == 0 || values.len() != count {
            return None;
        }
        let centre = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
        let spread = (squares / (count.max(2) - 1) as f64).sqrt();
        // Equal values have no spread to scale by.
        let scale = if spread > 1e-12 { spread } else { 1.0 };
        let standard = DVector::from_iterator(count, values.iter().map(|v| (v - centre) / scale));
        let matrix = DMatrix::from_fn(count, count, |row, column| {
            let noise = if row == column { shape.noise } else { 0.0 };
            shape.kernel(&points[row], &points[column]) + noise
        });
        let factor = factorise(&matrix)?;
        let ones = DVector::from_element(count, 1.0);
        let solved = factor.solve(&ones);
        let mean = solved.dot(&standard) / solved.dot(&ones);
        let residual = &standard - ones * mean;
        let weights = factor.solve(&residual);
        let variance = (residual.dot(&weights) / count as f64).max(1e-12);
        let half_determinant: f64 = factor.l_dirty().diagonal().iter().map(|at| at.ln()).sum();
        let log_likelihood = -0.5 * count as f64 * variance.ln() - half_determinant;
        let is_finite = mean.is_finite() && log_likelihood.is_finite();
        is_finite.then_some(GaussianProcess {
            shape,
            points,
            factor,
            weights,
            mean,
            variance,
            centre,
            scale,
            log_likelihood,
        })
    }

    /// Returns mean and variance of the true value of a combination.
    pub(crate) fn predict(&self, point: &[u32]) -> (f64, f64) {
        let kernel = self.points.iter().map(|other| self.shape.kernel(other, point));
        let kernel = DVector::from_iterator(self.points.len(), kernel);
        let mean = self.mean + kernel.dot(&self.weights);
        let explained = kernel.dot(&self.factor.solve(&kernel));
        let variance = self.variance * (1.0 - explained).max(0.0);
        (self.centre + self.scale * mean, self.scale * self.scale * variance)
    }
}

/// Returns the Cholesky factor, with the smallest jitter on the diagonal that suffices.
fn factorise(matrix: &DMatrix<f64>) -> Option<Cholesky<f64, Dyn>> {
    [0.0, 1e-10, 1e-8, 1e-6, 1e-4].into_iter().find_map(|jitter| {
        let mut matrix = matrix.clone();
        for at in 0..matrix.nrows() {
            matrix[(at, at)] += jitter;
        }
        Cholesky::new(matrix)
    })
}

/// Returns the logarithm of the expected improvement over `best` for this mean and variance.
///
/// Far below `best` the improvement itself underflows to 0, and all candidates would look alike (Ament
/// et al. 2023).
pub(crate) fn log_expected_improvement(mean: f64, variance: f64, best: f64) -> f64 {
    let deviation = variance.max(1e-18).sqrt();
    deviation.ln() + log_gain((mean - best) / deviation)
}

/// ln(φ(z) + z·Φ(z)).
fn log_gain(z: f64) -> f64 {
    let log_density = -0.5 * z * z - 0.5 * TAU.ln();
    if z > -2.0 {
        return (log_density.exp() + z * 0.5 * erfc(-z * FRAC_1_SQRT_2)).ln();
    }
    // With t = −z and Mills' ratio Φ(−t)/φ(t) = 1/(t + K), K = 1/(t + 2/(t + 3/(t + …))), it is
    // φ(t)·(1 − t/(t + K)) = φ(t)·K/(t + K): nothing cancels.
    let t = -z;
    let tail = (2..=300).rev().fold(0.0, |tail, number| f64::from(number) / (t + tail));
    let ratio = 1.0 / (t + tail);
    log_density + ratio.ln() - (t + ratio).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, two: f64, within: f64) {
        assert!((one - two).abs() <= within * two.abs().max(1.0), "{one} is not {two}");
    }

    /// With numpy: K from the formula above plus noise·I, inverted; values standardised with ddof=1;
    /// mean = 1ᵀK⁻¹z/1ᵀK⁻¹1, s² = (z−m)ᵀK⁻¹(z−m)/n; mean + kᵀK⁻¹(z−m) and s²(1 − kᵀK⁻¹k), scaled back.
    #[test]
    fn predictions_agree_with_numpy() {
        let points = vec![vec![0, 0], vec![0, 1], vec![1, 0], vec![2, 1]];
        let shape = KernelShape { lengths: vec![0.5, 2.0], noise: 0.1 };
        let process = GaussianProcess::new(points, &[0.2, 0.5, 0.4, 0.9], shape).unwrap();
        near(process.mean, 0.128_204_544_211_759_4, 1e-12);
        near(process.variance, 0.996_537_268_302_776_4, 1e-12);
        near(process.log_likelihood, 0.301_910_617_260_571_6, 1e-12);
        for (point, mean, variance) in [
            ([1, 1], 0.535_845_780_562_651_1, 0.034_029_030_986_464_75),
            ([2, 0], 0.690_608_594_728_312_3, 0.034_029_030_986_464_745),
            ([0, 0], 0.255_259_291_852_560_97, 0.006_982_198_876_040_89),
        ] {
            let found = process.predict(&point);
            near(found.0, mean, 1e-12);
            near(found.1, variance, 1e-12);
        }
    }

    /// With mpmath at 60 digits: log(npdf(z) + z*ncdf(z)).
    #[test]
    fn log_improvement_is_exact_far_below_the_best() {
        for (z, expected) in [
            (3.0, 1.098_739_665_327_707_8),
            (1.0, 0.080_026_218_849_306_94),
            (0.0, -0.918_938_533_204_672_7),
            (-1.0, -2.485_121_025_712_641),
            (-1.9, -4.504_931_161_621_667),
            (-2.1, -5.040_839_977_503_972),
            (-5.0, -16.744_301_162_660_99),
            (-10.0, -55.553_122_036_122_35),
            (-40.0, -808.298_568_356_62),
            (-1000.0, -500_014.734_452_091_16),
        ] {
            // The erfc of statrs has eleven correct digits.
            near(log_gain(z), expected, if z > -2.0 { 1e-10 } else { 1e-13 });
        }
        // 0.5 ± 0.2 against 0.9, z = −2: ln 0.2 + ln h(−2), where h(−2) = 0.00849070.
        near(
            log_expected_improvement(0.5, 0.04, 0.9),
            (0.2_f64 * 0.008_490_702_616_829_8).ln(),
            1e-9,
        );
    }

    #[test]
    fn larger_mean_or_variance_improves_more() {
        let gain = log_expected_improvement;
        assert!(gain(0.6, 0.01, 0.9) > gain(0.5, 0.01, 0.9));
        assert!(gain(0.5, 0.02, 0.9) > gain(0.5, 0.01, 0.9));
        assert!(gain(0.5, 0.0, 0.9).is_finite() || gain(0.5, 0.0, 0.9) == f64::NEG_INFINITY);
    }

    #[test]
    fn irrelevant_role_gets_a_long_length() {
        let points: Vec<Vec<u32>> = (0..16).map(|at| vec![at / 4, at % 4]).collect();
        let values: Vec<f64> = points.iter().map(|point| f64::from(point[0]) / 4.0).collect();
        let shape = KernelShape::most_likely(&points, &values);
        assert!(shape.lengths[1] > 3.0 * shape.lengths[0], "{shape:?}");
    }

    #[test]
    fn equal_points_and_values_give_finite_predictions() {
        let points = vec![vec![0], vec![0], vec![1]];
        let shape = KernelShape { lengths: vec![1.0], noise: 0.0 };
        let process = GaussianProcess::new(points.clone(), &[0.5; 3], shape).unwrap();
        let (mean, variance) = process.predict(&[2]);
        assert!((mean - 0.5).abs() < 1e-9 && variance.is_finite());
        assert!(KernelShape::most_likely(&points, &[0.5; 3]).noise.is_finite());
    }
}
