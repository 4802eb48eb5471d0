//! What combinations have in common: the population they come from.
//!
//! `θ = μ + effects of the models in their roles + an effect of its own`; the last has a heavy tail,
//! because a needle would be shrunk away without.

use super::tuning::Tuning;
use crate::space::Space;

/// Sweeps of EM a round; the next starts from where this one ended.
const SWEEPS: usize = 6;
const LEAST_ROLE: f64 = 1e-5;

/// The population.
#[derive(Debug, Clone)]
pub(super) struct Prior {
    centre: f64,
    /// For each role and candidate; empty when there is one role, whose effects are the combinations'.
    effects: Vec<Vec<f64>>,
    role: Vec<f64>,
    /// Variance of a combination's own effect.
    pub(super) own: f64,
    /// Sampling variance of each effect.
    noise: Vec<Vec<f64>>,
}

impl Prior {
    pub(super) fn new(space: &Space) -> Prior {
        let roles = if space.roles().len() > 1 { space.roles() } else { &[] };
        let effects: Vec<Vec<f64>> =
            roles.iter().map(|role| vec![0.0; role.candidates.len()]).collect();
        let role = vec![0.01; effects.len()];
        Prior { centre: 0.5, noise: effects.clone(), effects, role, own: 0.01 }
    }

    /// Fits it to means with their sampling variances; `noise` is that of each role's candidates.
    pub(super) fn fit(
        &mut self,
        space: &Space,
        means: &[f64],
        variances: &[f64],
        noise: Vec<Vec<f64>>,
        tuning: &Tuning,
    ) {
        self.noise = noise;
        let (tail, wide) = (tuning.tail.0, tuning.tail.1.powi(2));
        for _ in 0..SWEEPS {
            let rest = |prior: &Prior, arm: usize| means[arm] - prior.mean_with(space, arm, 1.0);
            let far: Vec<f64> = (0..means.len())
                .map(|arm| {
                    let rest = rest(self, arm);
                    let narrow = (1.0 - tail) * density(rest, self.own + variances[arm]);
                    let wide = tail * density(rest, self.own + wide + variances[arm]);
                    wide / (narrow + wide).max(1e-300)
                })
                .collect();
            let weights: Vec<f64> = (0..means.len())
                .map(|arm| {
                    let narrow = self.own + variances[arm];
                    (1.0 - far[arm]) / narrow + far[arm] / (narrow + wide)
                })
                .collect();
            let whole: f64 = weights.iter().sum();
            let shift =
                (0..means.len()).map(|arm| weights[arm] * rest(self, arm)).sum::<f64>() / whole;
            self.centre += shift;
            for place in 0..self.effects.len() {
                self.fit_role(space, place, means, &weights, tuning.doubt);
            }
            // Few combinations, or few datapoints, cannot tell that all are alike: the variance is
            // drawn to what the noise could hide.
            let hidden = variances.iter().sum::<f64>() / means.len() as f64;
            let (mut sum, mut count) = (0.0, 0.0);
            for arm in 0..means.len() {
                let share = self.own / (self.own + variances[arm]);
                let near = 1.0 - far[arm];
                sum += near * ((share * rest(self, arm)).powi(2) + share * variances[arm]);
                count += near;
            }
            let seen = sum / f64::max(count, 1e-9);
            let drawn = (sum + tuning.doubt * hidden) / (count + tuning.doubt).max(1e-9);
            self.own = seen.max(drawn).max(tuning.own.powi(2));
        }
    }

    fn fit_role(
        &mut self,
        space: &Space,
        place: usize,
        means: &[f64],
        weights: &[f64],
        doubt: f64,
    ) {
        let count = self.effects[place].len();
        let mut sums = vec![(0.0, 0.0); count];
        for (arm, mean) in means.iter().enumerate() {
            let member = space.members(arm)[place] as usize;
            let rest = mean - self.mean_with(space, arm, 1.0) + self.effects[place][member];
            sums[member].0 += weights[arm] * rest;
            sums[member].1 += weights[arm];
        }
        let mut squares = 0.0;
        for (effect, (sum, weight)) in self.effects[place].iter_mut().zip(sums) {
            let precision = weight + 1.0 / self.role[place];
            *effect = sum / precision;
            squares += *effect * *effect + 1.0 / precision;
        }
        let noise = self.noise[place].iter().sum::<f64>() / count as f64;
        let known = count as f64 + doubt;
        let seen = squares / count as f64;
        self.role[place] = ((squares + doubt * noise) / known).max(seen).max(LEAST_ROLE);
    }

    fn mean_with(&self, space: &Space, arm: usize, share: f64) -> f64 {
        let effects = self.effects.iter().zip(space.members(arm));
        self.centre + share * effects.map(|(of, &member)| of[member as usize]).sum::<f64>()
    }

    /// What a combination is expected to be before its own cells are looked at. Effects are shrunk by
    /// what they owe to the datapoints: those who share a model share its mistakes, so that nine who
    /// agree are not nine votes.
    pub(super) fn mean(&self, space: &Space, arm: usize) -> f64 {
        let mut mean = self.centre;
        for (place, &member) in space.members(arm).iter().enumerate().take(self.effects.len()) {
            let (role, noise) = (self.role[place], self.noise[place][member as usize]);
            mean += self.effects[place][member as usize] * role / (role + noise);
        }
        mean
    }

    /// What the effects of the roles in which two differ add to the prior variance of each.
    pub(super) fn extra(&self, space: &Space, one: usize, other: usize) -> f64 {
        let pairs = space.members(one).iter().zip(space.members(other)).enumerate();
        pairs
            .take(self.effects.len())
            .filter(|(_, (one, other))| one != other)
            .map(|(place, (&one, &other))| {
                let part = |member: u32| {
                    let (role, noise) = (self.role[place], self.noise[place][member as usize]);
                    role * noise / (role + noise)
                };
                part(one) + part(other)
            })
            .sum()
    }
}

/// The normal density, without its constant.
pub(super) fn density(value: f64, variance: f64) -> f64 {
    (-0.5 * value * value / variance).exp() / variance.sqrt()
}
