//! Constants, and why they are what they are.

/// What was found by replaying made matrices. Whether variances may be known to be small (`doubt`,
/// `unknown`) was asked because of a recorded one, and answered on made ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Cells that each combination gets first.
    pub first: usize,
    /// Least depth of the winner: the luckiest of many is lucky for a while.
    pub leader: usize,
    /// Factor of all standard deviations, for looking often.
    pub caution: f64,
    /// What is added to it for ten times the combinations.
    pub caution_per_decade: f64,
    /// Few samples: variances grow by 1 + this / n.
    pub few: f64,
    /// Share of the error that those left lying may have.
    pub parked: f64,
    /// A step, as a share of the depth.
    pub step: f64,
    /// Who is worth at least this share of the worthiest's is in the round.
    pub band: f64,
    /// Least standard deviation of a combination's own effect.
    pub own: f64,
    /// Weight and standard deviation of the heavy tail of that effect.
    pub tail: (f64, f64),
    /// Factor of the sampling variance of what those who share a model have in common.
    pub kin: f64,
    /// Weight, in combinations or candidates, of variances as large as the noise could hide.
    pub doubt: f64,
    /// Weight of the variance that scores are thought to have before any is seen, in datapoints.
    pub unknown: f64,
    /// Whether the chances of rivals are added (`false`), or put together as if independent given
    /// the leader (`true`).
    pub joint: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            first: 8,
            leader: 16,
            caution: 1.5,
            caution_per_decade: -0.22,
            few: 4.0,
            parked: 0.5,
            step: 0.15,
            band: 0.1,
            own: 0.02,
            tail: (0.05, 0.25),
            kin: 1.0,
            doubt: 3.0,
            unknown: 4.0,
            joint: false,
        }
    }
}
