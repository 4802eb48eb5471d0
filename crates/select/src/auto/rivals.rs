//! Who could still be better than the leader?

use super::normal::above;
use super::posterior::Posterior;
use super::tuning::Tuning;

/// How one compares with the leader: the difference of their means and its variance, if its own
/// effect is a typical one; and the same if it is from the wide tail, which has some chance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rival {
    pub(super) gap: f64,
    pub(super) variance: f64,
    pub(super) far: f64,
    pub(super) far_gap: f64,
    /// What the tail adds to the variance.
    pub(super) far_extra: f64,
}

impl Rival {
    /// Chance that it is better by more than `margin`, if a part of each variance were gone.
    fn better(&self, margin: f64, gone: (f64, f64)) -> f64 {
        let near = above(self.gap - margin, self.variance - gone.0);
        let far = above(self.far_gap - margin, self.variance + self.far_extra - gone.1);
        (1.0 - self.far) * near + self.far * far
    }

    /// Chance that it is worse by more than `margin`.
    fn worse(&self, margin: f64) -> f64 {
        let near = above(-self.gap - margin, self.variance);
        let far = above(-self.far_gap - margin, self.variance + self.far_extra);
        (1.0 - self.far) * near + self.far * far
    }
}

/// All of them, beside the leader.
pub(super) struct Rivals<'a> {
    pub(super) leader: usize,
    pub(super) rivals: Vec<Rival>,
    pub(super) now: &'a Posterior<'a>,
    pub(super) epsilon: f64,
    /// Factor of all variances.
    pub(super) caution: f64,
}

impl<'a> Rivals<'a> {
    /// The leader has the highest mean; `epsilon` is in scores.
    pub(super) fn new(now: &'a Posterior<'a>, tuning: &Tuning, epsilon: f64) -> Rivals<'a> {
        let arms = now.means.len();
        let leader = (0..arms)
            .fold(0, |best, arm| if now.means[arm] > now.means[best] { arm } else { best });
        let caution = tuning.caution.powi(2) + tuning.few / arms as f64;
        let epsilon = epsilon / now.seen().unit;
        let mut all =
            Rivals { leader, rivals: vec![Rival::default(); arms], now, epsilon, caution };
        let lead = now.covariance(leader, leader);
        for arm in (0..arms).filter(|&arm| arm != leader) {
            all.rivals[arm] = all.compare(arm, lead);
        }
        all
    }

    fn compare(&self, arm: usize, lead: f64) -> Rival {
        let (now, scales, seen) = (self.now, self.now.scales(), self.now.seen());
        let left = 1.0 - seen.depth(arm) as f64 / seen.total as f64;
        let (precision, mean) = scales.told(arm, now);
        // The own effect that another prior variance would have led to.
        let with = |prior: f64| {
            let variance = 1.0 / (precision + 1.0 / prior);
            (mean * precision * variance, variance)
        };
        let (near, far) = (with(scales.typical_of(arm)), with(scales.wide_of(arm)));
        let gap = now.means[arm] - now.means[self.leader];
        let both = now.covariance(arm, arm) + lead - 2.0 * now.covariance(arm, self.leader);
        let variance = both.max(0.0) + (near.1 - now.own_variance[arm]) * left * left;
        Rival {
            gap: gap + left * (near.0 - now.own[arm]),
            variance: self.caution * variance.max(0.0),
            far: scales.far[arm],
            far_gap: gap + left * (far.0 - now.own[arm]),
            far_extra: self.caution * (far.1 - near.1).max(0.0) * left * left,
        }
    }

    /// Chance that one is better than the leader by more than ε.
    pub(super) fn better(&self, arm: usize) -> f64 {
        if arm == self.leader { 0.0 } else { self.rivals[arm].better(self.epsilon, (0.0, 0.0)) }
    }

    /// Chance that one is worse than the leader by more than ε, or at all.
    pub(super) fn worse(&self, arm: usize, at_all: bool) -> f64 {
        let margin = if at_all { 0.0 } else { self.epsilon };
        if arm == self.leader { 0.0 } else { self.rivals[arm].worse(margin) }
    }

    /// How much smaller the chances of `rivals` would be if `arm` had seen so many more and nobody's
    /// mean had moved.
    pub(super) fn gain(&self, arm: usize, cells: usize, rivals: &[usize]) -> f64 {
        let others: Vec<usize> = rivals.iter().copied().chain([self.leader]).collect();
        let (covariances, variance) = self.now.outlook(arm, cells, &others);
        let Some((ours, rest)) = covariances.split_last() else { return 0.0 };
        let gain = |(&other, covariance): (&usize, &f64)| {
            let rival = &self.rivals[other];
            let told = covariance - ours;
            let gone = self.caution * told * told / variance;
            let far_gone = if other == arm {
                let extra = rival.far_extra / self.caution;
                self.caution * (told + extra).powi(2) / (variance + extra)
            } else {
                gone
            };
            let gone = (gone.min(rival.variance), far_gone.min(rival.variance + rival.far_extra));
            let after = rival.better(self.epsilon, gone);
            (rival.better(self.epsilon, (0.0, 0.0)) - after).max(0.0)
        };
        rivals.iter().zip(rest).map(gain).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::design::Design;
    use crate::auto::posterior::tests::small;
    use crate::auto::scales::Scales;
    use crate::auto::seen::Seen;
    use crate::testing::grid;

    #[test]
    fn what_is_known_to_the_end_is_certain() {
        let design = Design::new(&grid(&[3], 4));
        let rows = vec![vec![1.0, 1.0, 0.0, 1.0], vec![1.0; 4], vec![1.0, 1.0, 1.0, 0.995]];
        let seen = Seen::of(4, rows, vec![1.0; 3]);
        let scales = Scales::new(&design, 3, Tuning::default());
        let now = Posterior::new(&seen, &design, &scales).unwrap();
        let rivals = Rivals::new(&now, &Tuning::default(), 0.01);
        assert_eq!(rivals.leader, 1);
        assert_eq!([0, 2].map(|arm| rivals.better(arm)), [0.0, 0.0]);
        assert_eq!([0, 2].map(|arm| rivals.worse(arm, false)), [1.0, 0.0]);
        assert_eq!(rivals.worse(2, true), 1.0);
        assert_eq!(rivals.anybody(0.05), 0.0);
    }

    #[test]
    fn chances_are_those_of_a_normal_difference() {
        let (seen, design, mut scales) = small();
        // Nothing from the tail, and all that is believed of own effects is typical.
        scales.far = vec![0.0; 4];
        scales.typical = 0.01;
        scales.slope = vec![1.0; 4];
        scales.own = vec![0.01; 4];
        let now = Posterior::new(&seen, &design, &scales).unwrap();
        let rivals = Rivals::new(&now, &Tuning::default(), 0.01);
        assert_eq!(rivals.leader, 2);
        let variance = now.covariance(0, 0) + now.covariance(2, 2) - 2.0 * now.covariance(0, 2);
        // Four combinations are few: three quarters of the variance are added.
        let times = Tuning::default().caution.powi(2) + 0.75;
        let gap = now.means[0] - now.means[2] - 0.01;
        let expected = above(gap, times * variance);
        assert!((rivals.better(0) - expected).abs() < 1e-9);
        assert!(expected > 0.05 && expected < 0.5, "{expected}");
        // Two more cells of it take away what they are correlated with.
        let (told, own) = now.outlook(0, 2, &[0, 2]);
        let after = above(gap, times * (variance - (told[0] - told[1]).powi(2) / own));
        assert!((rivals.gain(0, 2, &[0]) - (expected - after)).abs() < 1e-9);
    }

    #[test]
    fn cells_of_the_leader_and_of_a_close_rival_tell_more_than_those_of_others() {
        let (seen, design, scales) = small();
        let now = Posterior::new(&seen, &design, &scales).unwrap();
        let rivals = Rivals::new(&now, &Tuning::default(), 0.01);
        let gain = |arm: usize, cells: usize| rivals.gain(arm, cells, &[0, 1, 3]);
        assert!(rivals.better(0) > rivals.better(1));
        assert!(gain(0, 2) > gain(1, 2), "{} {}", gain(0, 2), gain(1, 2));
        assert!(gain(0, 2) > gain(0, 1) && gain(0, 1) > 0.0);
    }
}
