//! Distribution of the combinations: effects of candidates in their roles, and own effects.

use super::design::Design;
use super::posterior::Posterior;
use super::scales::{PRIOR_EFFECT, Scales};

/// Distance from the centre up to which the curve bends; beyond, its slope is constant. 0.8 is a score
/// of 0.96.
const CURVE_REACH: f64 = 0.8;
/// Minimum slope for the scale of own effects.
const MIN_SLOPE: f64 = 0.5;

impl Scales {
    /// Fits the variances of effects to their expected squares (one EM step).
    pub(super) fn fit_effects(&mut self, design: &Design, posterior: &Posterior<'_>) {
        let weight = self.tuning.prior_candidates;
        for family in 1..design.families {
            let (mut squares, mut count) = (weight * PRIOR_EFFECT, weight);
            for column in (0..design.columns()).filter(|&column| design.family[column] == family) {
                squares += posterior.effects[column].powi(2) + posterior.effect_variance[column];
                count += 1.0;
            }
            self.effects[family] = (squares / count).max(1e-5);
        }
    }

    /// Fits the tangents of a logistic curve, of slope 1 in the middle, at the sum of the effects.
    pub(super) fn fit_slopes(&mut self, design: &Design, posterior: &Posterior<'_>) {
        for arm in 0..self.slope.len() {
            let sum: f64 = design.loads[arm].iter().map(|&column| posterior.effects[column]).sum();
            let at = sum.clamp(0.5 - CURVE_REACH, 0.5 + CURVE_REACH);
            let height = 1.0 / (1.0 + (-4.0 * (at - 0.5)).exp());
            self.slope[arm] = 4.0 * height * (1.0 - height);
            self.base[arm] = height - self.slope[arm] * at;
        }
    }

    /// Variance of an own effect outside the tail.
    pub(super) fn typical_of(&self, arm: usize) -> f64 {
        self.typical * self.slope[arm].max(MIN_SLOPE).powi(2)
    }

    /// Variance of an own effect in the tail.
    pub(super) fn wide_of(&self, arm: usize) -> f64 {
        self.typical_of(arm) + self.tuning.tail.1.powi(2)
    }

    /// Fits the own effects, a mixture of a typical and a wide distribution.
    ///
    /// Without the heavy tail, a single outstanding combination would be shrunk towards the others.
    pub(super) fn fit_own(&mut self, posterior: &Posterior<'_>) {
        let weight = self.tuning.prior_combos;
        let (mut squares, mut count) = (weight * self.prior_own, weight);
        for arm in 0..posterior.own.len() {
            let near = 1.0 - self.tail_probability[arm];
            let square = posterior.own[arm].powi(2) + posterior.own_variance[arm];
            squares += near * square / self.slope[arm].max(MIN_SLOPE).powi(2);
            count += near;
        }
        self.typical = (squares / count).max(self.tuning.min_own_deviation.powi(2));
        for arm in 0..posterior.own.len() {
            let (precision, mean) = self.own_likelihood(arm, posterior);
            let density = |variance: f64| {
                let variance = variance + 1.0 / precision;
                (-0.5 * mean * mean / variance).exp() / variance.sqrt()
            };
            let near = (1.0 - self.tuning.tail.0) * density(self.typical_of(arm));
            let far = self.tuning.tail.0 * density(self.wide_of(arm));
            self.tail_probability[arm] = far / (near + far).max(1e-300);
        }
        for arm in 0..posterior.own.len() {
            let far = self.tail_probability[arm];
            self.own[arm] = 1.0 / ((1.0 - far) / self.typical_of(arm) + far / self.wide_of(arm));
        }
    }

    /// Returns precision and mean of an own effect by its scores alone, without the prior.
    pub(super) fn own_likelihood(&self, arm: usize, posterior: &Posterior<'_>) -> (f64, f64) {
        let precision = (1.0 / posterior.own_variance[arm] - 1.0 / self.own[arm]).max(1e-9);
        (precision, posterior.own[arm] / posterior.own_variance[arm] / precision)
    }
}

#[cfg(test)]
mod tests {
    use crate::auto::posterior::{Posterior, tests::small};

    #[test]
    fn effect_variances_are_expected_squares() {
        let (data, design, mut scales) = small();
        let before = scales.clone();
        let posterior = Posterior::new(&data, &design, &before).unwrap();
        scales.fit_effects(&design, &posterior);
        // The two candidates of the first role, and the prior 0.01 with the weight of two more.
        let square = |at: usize| posterior.effects[at].powi(2) + posterior.effect_variance[at];
        assert!((scales.effects[1] - (square(1) + square(2) + 0.02) / 4.0).abs() < 1e-12);
        assert!((scales.effects[0] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn tangent_touches_the_curve() {
        let (data, design, mut scales) = small();
        let before = scales.clone();
        let mut posterior = Posterior::new(&data, &design, &before).unwrap();
        posterior.effects = vec![0.5, 0.0, 0.1, 0.0, 9.0];
        scales.fit_slopes(&design, &posterior);
        // At 0.5 the score is 0.5 and the slope 1; at 0.6 the score is s = 1/(1 + e^-0.4), the slope 4s(1 − s).
        assert!((scales.slope[0] - 1.0).abs() < 1e-12 && scales.base[0].abs() < 1e-12);
        assert!((scales.slope[2] - 0.961_042_98).abs() < 1e-8, "{:?}", scales.slope);
        assert!((scales.base[2] + 0.6 * scales.slope[2] - 0.598_687_66).abs() < 1e-8);
        // Far out the tangent is that at 1.3: 1/(1 + e^-3.2).
        assert!((scales.base[3] + 1.3 * scales.slope[3] - 0.960_834_28).abs() < 1e-8);
    }

    #[test]
    fn outlier_is_assigned_to_the_tail() {
        let (data, design, mut scales) = small();
        let before = scales.clone();
        let mut posterior = Posterior::new(&data, &design, &before).unwrap();
        posterior.own = vec![0.0, 0.0, 0.0, 0.4];
        posterior.own_variance = vec![0.0001; 4];
        scales.slope = vec![1.0; 4];
        scales.fit_own(&posterior);
        // The prior weight of the tail is 0.01; an effect of 0.4 makes it seven times as likely, 0 less.
        assert!(
            scales.tail_probability[0] < 0.01 && scales.tail_probability[3] > 0.05,
            "{:?}",
            scales.tail_probability
        );
        assert!(scales.own[3] > scales.own[0], "{:?}", scales.own);
    }
}
