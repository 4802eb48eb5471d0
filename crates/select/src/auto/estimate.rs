//! What is believed of all combinations, and of each against the leader.

use super::adjust::{Adjusted, Difficulty, mean_of};
use super::apart::Apart;
use super::normal::below;
use super::prior::{Prior, density};
use super::spread::{Spread, pool};
use super::table::Table;
use super::tuning::Tuning;
use crate::space::Space;

/// What is believed after a round.
#[derive(Debug)]
pub(super) struct Estimate {
    pub(super) leader: usize,
    /// Against the leader; the leader's own entry means nothing.
    pairs: Vec<Pair>,
    depths: Vec<usize>,
    total: usize,
    tuning: Tuning,
    caution: f64,
}

/// A combination beside the leader.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    /// How much the means differ, adjusted for what the other has seen.
    means: (f64, f64),
    expected: (f64, f64),
    /// Prior variances; the first is without the heavy tail.
    prior: (f64, f64),
    /// Variance of own residuals.
    own: (f64, f64),
    /// Variances of differences of scores, and of what the datapoints leave of the scores of the one
    /// that lags.
    scores: f64,
    left: f64,
    /// Means of what was seen, whatever the others have seen.
    plain: (f64, f64),
}

/// How one compares with the leader.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Standing {
    /// Chance that it is better by more than ε.
    pub(super) better: f64,
    /// Chance that it is worse by more than ε.
    pub(super) worse: f64,
}

impl Estimate {
    pub(super) fn new(
        space: &Space,
        table: &Table,
        (difficulty, prior): (&mut Difficulty, &mut Prior),
        tuning: Tuning,
    ) -> Estimate {
        let arms = table.arms();
        let (adjusted, front) = difficulty.adjust(table);
        let depths: Vec<usize> = (0..arms).map(|arm| table.depth(arm)).collect();
        let total = table.total();
        let caution = tuning.caution + tuning.caution_per_decade * (arms as f64).log10();
        let means: Vec<f64> = adjusted.iter().map(|of| of.mean).collect();
        let apart = Apart::new(table, &means, front);
        let own = apart.variances(tuning.unknown);
        let noise: Vec<Vec<f64>> = apart.role_noise(space, &depths, total, tuning.unknown);
        let sampling: Vec<f64> = (0..arms)
            .map(|arm| {
                own[arm] * left_of(depths[arm], total) * inflation(caution, &tuning, depths[arm])
            })
            .collect();
        // The population is fitted to what the noise is, not to what caution makes of it: the more is
        // put down to noise, the more alike all seem, and the surer one would be.
        let honest: Vec<f64> =
            (0..arms).map(|arm| own[arm] * left_of(depths[arm], total) + 1e-9).collect();
        let wide = |noise: &f64| noise * tuning.kin;
        let noise = noise.iter().map(|role| role.iter().map(wide).collect()).collect();
        prior.fit(space, &means, &honest, noise, &tuning);
        let beliefs: Vec<f64> = (0..arms)
            .map(|arm| {
                let expected = prior.mean(space, arm);
                let (far, rest) = (
                    far(prior, &tuning, means[arm] - expected, sampling[arm]),
                    means[arm] - expected,
                );
                let share = |variance: f64| variance / (variance + sampling[arm].max(1e-12));
                let wide = prior.own + tuning.tail.1.powi(2);
                expected + rest * ((1.0 - far) * share(prior.own) + far * share(wide))
            })
            .collect();
        let leader =
            (0..arms).fold(0, |best, arm| if beliefs[arm] > beliefs[best] { arm } else { best });
        let mut estimate = Estimate { leader, pairs: Vec::new(), depths, total, tuning, caution };
        estimate.pairs = estimate.compare(space, table, &adjusted, &own, prior, &sampling);
        estimate
    }

    fn compare(
        &self,
        space: &Space,
        table: &Table,
        adjusted: &[Adjusted],
        own: &[f64],
        prior: &Prior,
        sampling: &[f64],
    ) -> Vec<Pair> {
        let leader = self.leader;
        let arms = adjusted.len();
        let expected = prior.mean(space, leader);
        let leader_far =
            far(prior, &self.tuning, adjusted[leader].mean - expected, sampling[leader]);
        let leader_prior = prior.own + leader_far * self.tuning.tail.1.powi(2);
        let mut spreads = Vec::with_capacity(arms);
        let mut pairs = Vec::with_capacity(arms);
        for arm in 0..arms {
            let back = if table.depth(arm) > table.depth(leader) { leader } else { arm };
            let cells = table.row(arm).iter().zip(table.row(leader));
            spreads.push([
                Spread::of(cells.map(|(mine, theirs)| mine - theirs)),
                Spread::of_noise(table.row(back), adjusted[back].mean, &adjusted[back].residuals),
            ]);
            let means = (adjusted[arm].mean, adjusted[leader].mean);
            let extra = prior.extra(space, arm, leader);
            pairs.push(Pair {
                means,
                expected: (prior.mean(space, arm), expected),
                prior: (prior.own + extra, leader_prior + extra),
                own: (own[arm], own[leader]),
                plain: (mean_of(table.row(arm)), mean_of(table.row(leader))),
                ..Pair::default()
            });
        }
        let others = |kind: usize| {
            let spreads = spreads.iter().enumerate().filter(|(arm, _)| *arm != leader);
            pool(spreads.map(|(_, spreads)| &spreads[kind]), self.tuning.unknown)
        };
        let pools = [others(0), others(1)];
        for (arm, pair) in pairs.iter_mut().enumerate() {
            // Cells that errored tell nothing: as if fewer had been seen.
            let gaps = 1.0 / (1.0 - table.missing(arm).max(table.missing(leader))).max(0.1);
            pair.scores = gaps * spreads[arm][0].drawn_to(pools[0]);
            pair.left = (gaps * spreads[arm][1].drawn_to(pools[1])).max(0.25 * pair.scores);
        }
        pairs
    }

    pub(super) fn depth(&self, arm: usize) -> usize {
        self.depths[arm]
    }

    /// How a combination compares with the leader now.
    pub(super) fn standing(&self, arm: usize, epsilon: f64) -> Standing {
        self.standing_at(arm, self.depths[arm], self.depths[self.leader], epsilon)
    }

    /// How it would compare if both had come so far and the means were as they are.
    pub(super) fn standing_at(
        &self,
        arm: usize,
        depth: usize,
        leader: usize,
        epsilon: f64,
    ) -> Standing {
        let pair = &self.pairs[arm];
        if depth == self.total && leader == self.total {
            let gap = pair.plain.0 - pair.plain.1;
            let sure = |is: bool| if is { 1.0 } else { 0.0 };
            return Standing {
                better: sure(gap > epsilon + 1e-9),
                worse: sure(gap < -epsilon - 1e-9),
            };
        }
        let (low, high) = (depth.min(leader), depth.max(leader));
        let inflation = inflation(self.caution, &self.tuning, low);
        let part = |from: usize, to: usize| (1.0 / from as f64 - 1.0 / to as f64).max(0.0);
        let variance =
            inflation * (pair.scores * part(high, self.total) + pair.left * part(low, high));
        let noise = (
            pair.own.0 * left_of(depth, self.total) * inflation + 1e-9,
            pair.own.1 * left_of(leader, self.total) * inflation + 1e-9,
        );
        pair.posterior(variance, noise, &self.tuning, epsilon)
    }
}

impl Pair {
    /// A Gaussian update in two dimensions for each part of the prior, mixed by how well each
    /// explains what was seen.
    fn posterior(
        &self,
        variance: f64,
        noise: (f64, f64),
        tuning: &Tuning,
        epsilon: f64,
    ) -> Standing {
        let most = 0.95 * (noise.0 * noise.1).sqrt();
        let together = ((noise.0 + noise.1 - variance) / 2.0).clamp(-most, most);
        let rest = (self.means.0 - self.expected.0, self.means.1 - self.expected.1);
        let parts = [(1.0 - tuning.tail.0, 0.0), (tuning.tail.0, tuning.tail.1.powi(2))];
        let mut whole = 0.0;
        let mut standing = Standing::default();
        for (weight, wide) in parts {
            let prior = (self.prior.0 + wide, self.prior.1);
            let (a, b, c) = (prior.0 + noise.0, prior.1 + noise.1, together);
            let determinant = (a * b - c * c).max(1e-18);
            let solve =
                |x: f64, y: f64| ((b * x - c * y) / determinant, (a * y - c * x) / determinant);
            let solved = solve(rest.0, rest.1);
            let mean = self.expected.0 - self.expected.1 + prior.0 * solved.0 - prior.1 * solved.1;
            let gain = solve(prior.0, -prior.1);
            let left = prior.0 + prior.1 - (prior.0 * gain.0 - prior.1 * gain.1);
            let sd = left.max(1e-12).sqrt();
            let fit = (-0.5 * (rest.0 * solved.0 + rest.1 * solved.1)).exp() / determinant.sqrt();
            let weight = weight * fit.max(1e-300);
            whole += weight;
            standing.better += weight * below((mean - epsilon) / sd);
            standing.worse += weight * below((-mean - epsilon) / sd);
        }
        Standing { better: standing.better / whole, worse: standing.worse / whole }
    }
}

/// Chance that a combination's own effect is from the heavy tail.
fn far(prior: &Prior, tuning: &Tuning, rest: f64, sampling: f64) -> f64 {
    let variance = prior.own + sampling;
    let narrow = (1.0 - tuning.tail.0) * density(rest, variance);
    let wide = tuning.tail.0 * density(rest, variance + tuning.tail.1.powi(2));
    wide / (narrow + wide).max(1e-300)
}

fn left_of(depth: usize, total: usize) -> f64 {
    1.0 / depth.max(1) as f64 - 1.0 / total as f64
}

fn inflation(caution: f64, tuning: &Tuning, depth: usize) -> f64 {
    caution * caution * (1.0 + tuning.few / depth.max(1) as f64)
}
