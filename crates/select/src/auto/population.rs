//! What combinations are like: effects of the models in their roles, and what is their own.

use super::design::Design;
use super::posterior::Posterior;
use super::scales::{EFFECT, Scales};

/// How far the curve is followed; beyond, it is as steep as there. 0.8 is a score of 0.96.
const REACH: f64 = 0.8;
/// Own effects are not thought to flatten out more than this.
const FLATTEST: f64 = 0.5;

impl Scales {
    /// Variances of effects: squares that are expected (a step of EM).
    pub(super) fn fit_effects(&mut self, design: &Design, now: &Posterior<'_>) {
        let doubt = self.tuning.doubt_effects;
        for family in 1..design.families {
            let (mut squares, mut count) = (doubt * EFFECT, doubt);
            for column in (0..design.columns()).filter(|&column| design.family[column] == family) {
                squares += now.effects[column].powi(2) + now.effect_variance[column];
                count += 1.0;
            }
            self.effects[family] = (squares / count).max(1e-5);
        }
    }

    /// The tangent of a logistic curve, of slope 1 in the middle, where the effects lead.
    pub(super) fn fit_slopes(&mut self, design: &Design, now: &Posterior<'_>) {
        for arm in 0..self.slope.len() {
            let sum: f64 = design.loads[arm].iter().map(|&column| now.effects[column]).sum();
            let at = sum.clamp(0.5 - REACH, 0.5 + REACH);
            let height = 1.0 / (1.0 + (-4.0 * (at - 0.5)).exp());
            self.slope[arm] = 4.0 * height * (1.0 - height);
            self.base[arm] = height - self.slope[arm] * at;
        }
    }

    /// Variance of an own effect that is not from the tail.
    pub(super) fn typical_of(&self, arm: usize) -> f64 {
        self.typical * self.slope[arm].max(FLATTEST).powi(2)
    }

    /// And of one that is.
    pub(super) fn wide_of(&self, arm: usize) -> f64 {
        self.typical_of(arm) + self.tuning.tail.1.powi(2)
    }

    /// The own effects have a heavy tail: each is a typical one, or one of a wide kind. Without, a
    /// needle would be shrunk away.
    pub(super) fn fit_own(&mut self, now: &Posterior<'_>) {
        let doubt = self.tuning.doubt_own;
        let (mut squares, mut count) = (doubt * self.guess, doubt);
        for arm in 0..now.own.len() {
            let near = 1.0 - self.far[arm];
            let square = now.own[arm].powi(2) + now.own_variance[arm];
            squares += near * square / self.slope[arm].max(FLATTEST).powi(2);
            count += near;
        }
        self.typical = (squares / count).max(self.tuning.least_own.powi(2));
        for arm in 0..now.own.len() {
            let (precision, mean) = self.told(arm, now);
            let density = |variance: f64| {
                let variance = variance + 1.0 / precision;
                (-0.5 * mean * mean / variance).exp() / variance.sqrt()
            };
            let near = (1.0 - self.tuning.tail.0) * density(self.typical_of(arm));
            let far = self.tuning.tail.0 * density(self.wide_of(arm));
            self.far[arm] = far / (near + far).max(1e-300);
        }
        for arm in 0..now.own.len() {
            let far = self.far[arm];
            self.own[arm] = 1.0 / ((1.0 - far) / self.typical_of(arm) + far / self.wide_of(arm));
        }
    }

    /// What scores alone say of an own effect: the belief without what was believed before. A
    /// precision, and a mean.
    pub(super) fn told(&self, arm: usize, now: &Posterior<'_>) -> (f64, f64) {
        let precision = (1.0 / now.own_variance[arm] - 1.0 / self.own[arm]).max(1e-9);
        (precision, now.own[arm] / now.own_variance[arm] / precision)
    }
}

#[cfg(test)]
mod tests {
    use crate::auto::posterior::{Posterior, tests::small};

    #[test]
    fn variances_of_effects_are_the_squares_that_are_expected() {
        let (seen, design, mut scales) = small();
        let before = scales.clone();
        let now = Posterior::new(&seen, &design, &before).unwrap();
        scales.fit_effects(&design, &now);
        // The two candidates of the first role, and 0.01 with the weight of two more.
        let square = |at: usize| now.effects[at].powi(2) + now.effect_variance[at];
        assert!((scales.effects[1] - (square(1) + square(2) + 0.02) / 4.0).abs() < 1e-12);
        assert!((scales.effects[0] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_tangent_touches_the_curve() {
        let (seen, design, mut scales) = small();
        let before = scales.clone();
        let mut now = Posterior::new(&seen, &design, &before).unwrap();
        now.effects = vec![0.5, 0.0, 0.1, 0.0, 9.0];
        scales.fit_slopes(&design, &now);
        // At 0.5 the score is 0.5 and the slope 1; at 0.6 they are 1/(1 + e^-0.4) and 4 of it times the rest.
        assert!((scales.slope[0] - 1.0).abs() < 1e-12 && scales.base[0].abs() < 1e-12);
        assert!((scales.slope[2] - 0.961_042_98).abs() < 1e-8, "{:?}", scales.slope);
        assert!((scales.base[2] + 0.6 * scales.slope[2] - 0.598_687_66).abs() < 1e-8);
        // Far out it is followed no further than 1.3: 1/(1 + e^-3.2).
        assert!((scales.base[3] + 1.3 * scales.slope[3] - 0.960_834_28).abs() < 1e-8);
    }

    #[test]
    fn one_far_from_what_is_typical_is_from_the_tail() {
        let (seen, design, mut scales) = small();
        let before = scales.clone();
        let mut now = Posterior::new(&seen, &design, &before).unwrap();
        now.own = vec![0.0, 0.0, 0.0, 0.4];
        now.own_variance = vec![0.0001; 4];
        scales.slope = vec![1.0; 4];
        scales.fit_own(&now);
        // One in a hundred is thought to be; 0.4 makes that seven times as likely, 0 less.
        assert!(scales.far[0] < 0.01 && scales.far[3] > 0.05, "{:?}", scales.far);
        assert!(scales.own[3] > scales.own[0], "{:?}", scales.own);
    }
}
