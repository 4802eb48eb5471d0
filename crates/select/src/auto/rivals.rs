//! Who could still be better than the leader?

use super::normal::{below, draw};
use super::posterior::Posterior;
use super::scales::Scales;
use super::seen::{Design, Seen};
use super::tuning::Tuning;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::RngExt;

/// How one compares with the leader: difference of means, its variance, and the same if its own
/// effect is from the wide tail.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rival {
    pub(super) gap: f64,
    pub(super) variance: f64,
    far: f64,
    far_gap: f64,
    far_extra: f64,
}

impl Rival {
    /// Chance that it is better by more than `margin`, if a part of the variance were gone.
    fn better(&self, margin: f64, (gone, far_gone): (f64, f64)) -> f64 {
        let chance = |gap: f64, variance: f64| above(gap - margin, variance);
        let near = chance(self.gap, self.variance - gone);
        let far = chance(self.far_gap, self.variance + self.far_extra - far_gone);
        (1.0 - self.far) * near + self.far * far
    }

    fn worse(&self, margin: f64) -> f64 {
        let near = above(-self.gap - margin, self.variance);
        let far = above(-self.far_gap - margin, self.variance + self.far_extra);
        (1.0 - self.far) * near + self.far * far
    }
}

/// Chance that something of this mean is above 0. What does not vary is above it or is not.
fn above(mean: f64, variance: f64) -> f64 {
    if variance <= 1e-12 {
        return if mean > 1e-9 { 1.0 } else { 0.0 };
    }
    below(mean / variance.sqrt())
}

/// All of them.
#[derive(Debug)]
pub(super) struct Rivals<'a> {
    pub(super) leader: usize,
    rivals: Vec<Rival>,
    now: &'a Posterior,
    context: (&'a Design, &'a Scales, &'a Seen),
    tuning: Tuning,
    epsilon: f64,
}

impl<'a> Rivals<'a> {
    pub(super) fn new(
        now: &'a Posterior,
        context: (&'a Design, &'a Scales, &'a Seen),
        tuning: Tuning,
        (leader, epsilon): (usize, f64),
    ) -> Rivals<'a> {
        let (_, scales, seen) = context;
        let arms = now.means.len();
        let total = seen.total as f64;
        let own = now.covariance(context, leader, leader);
        let mut rivals = vec![Rival::default(); arms];
        for arm in (0..arms).filter(|&arm| arm != leader) {
            let (mine, ours) =
                (now.covariance(context, arm, arm), now.covariance(context, arm, leader));
            let least = seen.depth(arm).min(seen.depth(leader)).max(1) as f64;
            let caution = tuning.caution.powi(2) * (1.0 + tuning.few / least);
            let gap = now.means[arm] - now.means[leader];
            let left = 1.0 - seen.depth(arm) as f64 / total;
            let told = (1.0 / now.own_variance[arm] - 1.0 / scales.own[arm]).max(1e-9);
            let at = |prior: f64| {
                let variance = 1.0 / (told + 1.0 / prior);
                let mean = now.own[arm] / now.own_variance[arm] * variance;
                (mean, variance)
            };
            let near = at(scales.typical_of(arm));
            let far = at(scales.typical_of(arm) + tuning.tail.1.powi(2));
            let variance = (mine + own - 2.0 * ours).max(0.0)
                + (near.1 - now.own_variance[arm]) * left * left;
            rivals[arm] = Rival {
                gap: gap + left * (near.0 - now.own[arm]),
                variance: variance.max(0.0) * caution,
                far: scales.far[arm],
                far_gap: gap + left * (far.0 - now.own[arm]),
                far_extra: (far.1 - near.1).max(0.0) * left * left * caution,
            };
        }
        Rivals { leader, rivals, now, context, tuning, epsilon }
    }

    pub(super) fn debug(&self) {
        let (_, scales, seen) = self.context;
        eprintln!("ROUND leader {} depth {} mean {:.3} noise {:.3} shared {:.4?} effects {:.4?} typical {:.3} blocks {:?}", self.leader, seen.depth(self.leader), self.now.means[self.leader], scales.noise, scales.shared, scales.effects, scales.typical.sqrt(), seen.blocks.iter().map(|b| (b.to, b.arms.len())).collect::<Vec<_>>());
        let mut order: Vec<usize> = (0..self.rivals.len()).collect();
        order.sort_by(|&a, &b| self.now.means[b].total_cmp(&self.now.means[a]));
        for arm in order.into_iter().take(81) {
            let raw = seen.rows[arm].iter().sum::<f64>() / seen.depth(arm) as f64;
            eprintln!("  arm {arm} loads {:?} depth {} raw {raw:.3} mean {:.3} theta {:.3} own {:.3} sd {:.4} far {:.3} fargap {:.3} P {:.4} load {:.2}", self.context.0.loads[arm], seen.depth(arm), self.now.means[arm], self.now.theta[arm], self.now.own[arm], self.rivals[arm].variance.sqrt(), self.rivals[arm].far, self.rivals[arm].far_gap, self.better(arm), scales.load[arm]);
        }
    }

    /// Chance that one is better than the leader by more than ε.
    pub(super) fn better(&self, arm: usize) -> f64 {
        if arm == self.leader { 0.0 } else { self.rivals[arm].better(self.epsilon, (0.0, 0.0)) }
    }

    /// Chance that one is worse than the leader by more than `margin`.
    pub(super) fn worse(&self, arm: usize, margin: f64) -> f64 {
        if arm == self.leader { 0.0 } else { self.rivals[arm].worse(margin) }
    }

    /// Chance that anybody is: by draws for those who have a chance at all, added up for the others.
    pub(super) fn anybody(&self, enough: f64) -> f64 {
        let mut chances: Vec<(usize, f64)> =
            (0..self.rivals.len()).map(|arm| (arm, self.better(arm))).collect();
        chances.sort_by(|one, other| other.1.total_cmp(&one.1));
        let close = chances.iter().take(MOST).take_while(|(_, chance)| *chance > LEAST).count();
        let rest: f64 = chances[close..].iter().map(|(_, chance)| chance).sum();
        let sum: f64 = chances.iter().map(|(_, chance)| chance).sum();
        // Between the largest and the sum: where that settles it, nothing has to be drawn.
        if close < 2 || chances[0].1 > enough || sum <= 0.5 * enough || self.tuning.joint == 0.0 {
            return sum.min(1.0);
        }
        let arms: Vec<usize> = chances[..close].iter().map(|(arm, _)| *arm).collect();
        (self.drawn(&arms) + rest).min(sum).min(1.0)
    }

    fn drawn(&self, arms: &[usize]) -> f64 {
        let own = self.now.covariance(self.context, self.leader, self.leader);
        let with: Vec<f64> =
            arms.iter().map(|&arm| self.now.covariance(self.context, arm, self.leader)).collect();
        // Correlations of the differences, scaled to the variances they are thought to have.
        let size = arms.len();
        let mut matrix = nalgebra::DMatrix::<f64>::zeros(size, size);
        for (row, &one) in arms.iter().enumerate() {
            for (column, &other) in arms.iter().enumerate().take(row + 1) {
                let value = self.now.covariance(self.context, one, other) - with[row]
                    - with[column]
                    + own;
                matrix[(row, column)] = value;
                matrix[(column, row)] = value;
            }
        }
        let scale: Vec<f64> = (0..size)
            .map(|row| (self.rivals[arms[row]].variance / matrix[(row, row)].max(1e-12)).sqrt())
            .collect();
        for row in 0..size {
            for column in 0..size {
                matrix[(row, column)] *= scale[row] * scale[column];
            }
            matrix[(row, row)] = matrix[(row, row)] * 1.001 + 1e-10;
        }
        let Some(factor) = matrix.cholesky() else { return 1.0 };
        let lower = factor.l();
        let mut random = ChaCha8Rng::seed_from_u64(size as u64);
        let mut hits = 0.0;
        let mut fresh = vec![0.0; size];
        for _ in 0..DRAWS {
            let mut hit = false;
            for (row, &arm) in arms.iter().enumerate() {
                let rival = &self.rivals[arm];
                fresh[row] = draw(&mut random);
                let shared: f64 = (0..=row).map(|at| lower[(row, at)] * fresh[at]).sum();
                let value = if random.random::<f64>() < rival.far {
                    rival.far_gap + shared + rival.far_extra.sqrt() * draw(&mut random)
                } else {
                    rival.gap + shared
                };
                hit = value > self.epsilon + 1e-9;
                if hit {
                    break;
                }
            }
            hits += f64::from(u8::from(hit));
        }
        hits / DRAWS as f64
    }

    /// How much smaller the chances of all would be if one had seen so many more and nobody's mean
    /// had moved.
    pub(super) fn gain(&self, arm: usize, cells: usize, arms: &[usize]) -> f64 {
        let (_, _, seen) = self.context;
        let mut others = arms.to_vec();
        others.push(self.leader);
        let (covariances, variance) = self.now.outlook(self.context, arm, cells, &others);
        let Some((ours, rest)) = covariances.split_last() else { return 0.0 };
        let mut gain = 0.0;
        for (&other, covariance) in arms.iter().zip(rest) {
            let rival = &self.rivals[other];
            let least = seen.depth(other).min(seen.depth(self.leader)).max(1) as f64;
            let caution = self.tuning.caution.powi(2) * (1.0 + self.tuning.few / least);
            let gone = caution * (covariance - ours).powi(2) / variance;
            let far_gone = if other == arm {
                let extra = rival.far_extra / caution;
                caution * (covariance - ours + extra).powi(2) / (variance + extra)
            } else {
                gone
            };
            let before = rival.better(self.epsilon, (0.0, 0.0));
            let after = rival.better(
                self.epsilon,
                (gone.min(rival.variance), far_gone.min(rival.variance + rival.far_extra)),
            );
            gain += (before - after).max(0.0);
        }
        gain
    }
}

/// Draws of the joint posterior, and who takes part in them.
const DRAWS: usize = 1000;
const MOST: usize = 60;
const LEAST: f64 = 1e-4;
