//! Probabilities that rivals are better than the leader.

use super::normal::above;
use super::posterior::Posterior;
use super::tuning::AutoTuning;

/// Comparison of a combination with the leader: the difference of their means and its variance, for a
/// typical own effect and for one from the tail.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rival {
    pub(super) gap: f64,
    pub(super) variance: f64,
    /// Probability that the own effect is from the tail.
    pub(super) tail_probability: f64,
    /// Difference in that case.
    pub(super) tail_gap: f64,
    /// Variance added in that case.
    pub(super) tail_extra: f64,
}

impl Rival {
    /// Returns the probability that it is better by more than `margin`, with both variances reduced.
    fn better(&self, margin: f64, reduction: (f64, f64)) -> f64 {
        let near = above(self.gap - margin, self.variance - reduction.0);
        let far = above(self.tail_gap - margin, self.variance + self.tail_extra - reduction.1);
        (1.0 - self.tail_probability) * near + self.tail_probability * far
    }

    /// Returns the probability that it is worse by more than `margin`.
    fn worse(&self, margin: f64) -> f64 {
        let near = above(-self.gap - margin, self.variance);
        let far = above(-self.tail_gap - margin, self.variance + self.tail_extra);
        (1.0 - self.tail_probability) * near + self.tail_probability * far
    }
}

/// All combinations, compared with the leader.
pub(super) struct Rivals<'a> {
    pub(super) leader: usize,
    pub(super) rivals: Vec<Rival>,
    pub(super) posterior: &'a Posterior<'a>,
    pub(super) epsilon: f64,
    /// Factor on all variances.
    pub(super) inflation: f64,
}

impl<'a> Rivals<'a> {
    /// Compares all combinations with the one of the highest mean; `epsilon` is in units of the score.
    pub(super) fn new(
        posterior: &'a Posterior<'a>,
        tuning: &AutoTuning,
        epsilon: f64,
    ) -> Rivals<'a> {
        let arms = posterior.means.len();
        let leader = (0..arms).fold(0, |best, arm| {
            if posterior.means[arm] > posterior.means[best] { arm } else { best }
        });
        let inflation =
            tuning.deviation_factor.powi(2) + tuning.small_space_inflation / arms as f64;
        let epsilon = epsilon / posterior.data().unit;
        let mut all =
            Rivals { leader, rivals: vec![Rival::default(); arms], posterior, epsilon, inflation };
        let leader_variance = posterior.covariance(leader, leader);
        for arm in (0..arms).filter(|&arm| arm != leader) {
            all.rivals[arm] = all.compare(arm, leader_variance);
        }
        all
    }

    fn compare(&self, arm: usize, leader_variance: f64) -> Rival {
        let (posterior, scales, data) =
            (self.posterior, self.posterior.scales(), self.posterior.data());
        let unseen = 1.0 - data.depth(arm) as f64 / data.total as f64;
        let (precision, mean) = scales.own_likelihood(arm, posterior);
        // The own effect under a different prior variance.
        let with = |prior: f64| {
            let variance = 1.0 / (precision + 1.0 / prior);
            (mean * precision * variance, variance)
        };
        let (near, far) = (with(scales.typical_of(arm)), with(scales.wide_of(arm)));
        let gap = posterior.means[arm] - posterior.means[self.leader];
        let both = posterior.covariance(arm, arm) + leader_variance
            - 2.0 * posterior.covariance(arm, self.leader);
        let variance = both.max(0.0) + (near.1 - posterior.own_variance[arm]) * unseen * unseen;
        Rival {
            gap: gap + unseen * (near.0 - posterior.own[arm]),
            variance: self.inflation * variance.max(0.0),
            tail_probability: scales.tail_probability[arm],
            tail_gap: gap + unseen * (far.0 - posterior.own[arm]),
            tail_extra: self.inflation * (far.1 - near.1).max(0.0) * unseen * unseen,
        }
    }

    /// Returns the probability that a combination is better than the leader by more than ε.
    pub(super) fn better(&self, arm: usize) -> f64 {
        if arm == self.leader { 0.0 } else { self.rivals[arm].better(self.epsilon, (0.0, 0.0)) }
    }

    /// Returns the probability that a combination is better than the leader by more than ε if its scores vary as much as
    /// those of the leader.
    ///
    /// The variance of a score follows from the mean, so a combination with a few unlucky zeros seems to vary little. If it
    /// were as good as the leader, it would vary as much.
    pub(super) fn better_with_leader_noise(&self, arm: usize) -> f64 {
        let noise = &self.posterior.scales().noise_factor;
        let ratio = (noise[self.leader] / noise[arm]).max(1.0);
        let Rival { variance, tail_extra, .. } = self.rivals[arm];
        let rival = Rival {
            variance: ratio * variance,
            tail_extra: ratio * tail_extra,
            ..self.rivals[arm]
        };
        if arm == self.leader { 0.0 } else { rival.better(self.epsilon, (0.0, 0.0)) }
    }

    /// Returns the probability that a combination is worse than the leader by more than ε, or at all.
    pub(super) fn worse(&self, arm: usize, at_all: bool) -> f64 {
        let margin = if at_all { 0.0 } else { self.epsilon };
        if arm == self.leader { 0.0 } else { self.rivals[arm].worse(margin) }
    }

    /// Returns by how much the probabilities of `rivals` would fall if `arm` had this many more cells and
    /// no mean had moved.
    pub(super) fn gain(&self, arm: usize, cells: usize, rivals: &[usize]) -> f64 {
        let others: Vec<usize> = rivals.iter().copied().chain([self.leader]).collect();
        let (covariances, variance) = self.posterior.outlook(arm, cells, &others);
        let Some((ours, rest)) = covariances.split_last() else { return 0.0 };
        let gain = |(&other, covariance): (&usize, &f64)| {
            let rival = &self.rivals[other];
            let shared = covariance - ours;
            let reduction = self.inflation * shared * shared / variance;
            let tail_reduction = if other == arm {
                let extra = rival.tail_extra / self.inflation;
                self.inflation * (shared + extra).powi(2) / (variance + extra)
            } else {
                reduction
            };
            let tail_variance = rival.variance + rival.tail_extra;
            let reduction = (reduction.min(rival.variance), tail_reduction.min(tail_variance));
            let after = rival.better(self.epsilon, reduction);
            (rival.better(self.epsilon, (0.0, 0.0)) - after).max(0.0)
        };
        rivals.iter().zip(rest).map(gain).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::data::ModelData;
    use crate::auto::design::Design;
    use crate::auto::posterior::tests::small;
    use crate::auto::scales::Scales;
    use crate::testing::grid;

    #[test]
    fn complete_rows_have_no_uncertainty() {
        let design = Design::new(&grid(&[3], 4));
        let rows = vec![vec![1.0, 1.0, 0.0, 1.0], vec![1.0; 4], vec![1.0, 1.0, 1.0, 0.995]];
        let data = ModelData::of(4, rows, vec![1.0; 3]);
        let scales = Scales::new(&design, 3, AutoTuning::default());
        let posterior = Posterior::new(&data, &design, &scales).unwrap();
        let rivals = Rivals::new(&posterior, &AutoTuning::default(), 0.01);
        assert_eq!(rivals.leader, 1);
        assert_eq!([0, 2].map(|arm| rivals.better(arm)), [0.0, 0.0]);
        assert_eq!([0, 2].map(|arm| rivals.worse(arm, false)), [1.0, 0.0]);
        assert_eq!(rivals.worse(2, true), 1.0);
        assert_eq!(rivals.any_better(0.05), 0.0);
    }

    #[test]
    fn probabilities_are_those_of_a_normal_difference() {
        let (data, design, mut scales) = small();
        // No tail, and the same variance for all own effects.
        scales.tail_probability = vec![0.0; 4];
        scales.typical = 0.01;
        scales.slope = vec![1.0; 4];
        scales.own = vec![0.01; 4];
        let posterior = Posterior::new(&data, &design, &scales).unwrap();
        let rivals = Rivals::new(&posterior, &AutoTuning::default(), 0.01);
        assert_eq!(rivals.leader, 2);
        let variance = posterior.covariance(0, 0) + posterior.covariance(2, 2)
            - 2.0 * posterior.covariance(0, 2);
        // The inflation for four combinations is 3/4.
        let times = AutoTuning::default().deviation_factor.powi(2) + 0.75;
        let gap = posterior.means[0] - posterior.means[2] - 0.01;
        let expected = above(gap, times * variance);
        assert!((rivals.better(0) - expected).abs() < 1e-9);
        assert!(expected > 0.05 && expected < 0.5, "{expected}");
        // Two more cells reduce the variance by what they are correlated with.
        let (shared, own) = posterior.outlook(0, 2, &[0, 2]);
        let after = above(gap, times * (variance - (shared[0] - shared[1]).powi(2) / own));
        assert!((rivals.gain(0, 2, &[0]) - (expected - after)).abs() < 1e-9);
    }

    #[test]
    fn rival_with_less_noise_than_the_leader_is_excluded_later() {
        let (data, design, mut scales) = small();
        scales.tail_probability = vec![0.0; 4];
        let posterior = Posterior::new(&data, &design, &scales).unwrap();
        let rivals = Rivals::new(&posterior, &AutoTuning::default(), 0.01);
        // The noise factors are 1, 0.64, 1.44 (the leader) and 0.81.
        let (rival, ratio) = (&rivals.rivals[1], 1.44 / 0.64);
        let expected = above(rival.gap - 0.01, ratio * rival.variance);
        assert!((rivals.better_with_leader_noise(1) - expected).abs() < 1e-9);
        assert!(expected > rivals.better(1));
        assert!(rivals.better_with_leader_noise(2) <= 0.0);
        // A rival with more noise keeps its own.
        scales.noise_factor[1] = 2.0;
        let posterior = Posterior::new(&data, &design, &scales).unwrap();
        let rivals = Rivals::new(&posterior, &AutoTuning::default(), 0.01);
        assert!((rivals.better_with_leader_noise(1) - rivals.better(1)).abs() < 1e-12);
    }

    #[test]
    fn cells_of_close_rivals_are_more_informative() {
        let (data, design, scales) = small();
        let posterior = Posterior::new(&data, &design, &scales).unwrap();
        let rivals = Rivals::new(&posterior, &AutoTuning::default(), 0.01);
        let gain = |arm: usize, cells: usize| rivals.gain(arm, cells, &[0, 1, 3]);
        assert!(rivals.better(0) > rivals.better(1));
        assert!(gain(0, 2) > gain(1, 2), "{} {}", gain(0, 2), gain(1, 2));
        assert!(gain(0, 2) > gain(0, 1) && gain(0, 1) > 0.0);
    }
}
