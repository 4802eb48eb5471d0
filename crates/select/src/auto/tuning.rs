//! Constants, and why they are what they are.

/// What was found by replaying made matrices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Cells that each combination gets first.
    pub first: usize,
    /// Least depth of the winner: the luckiest of many is lucky for a while.
    pub leader: usize,
    /// Factor of all standard deviations, for looking often.
    pub caution: f64,
    /// Few samples: variances grow by 1 + this / n.
    pub few: f64,
    /// A step, as a share of the depth.
    pub step: f64,
    /// Who is worth at least this share of the worthiest's is in the round.
    pub band: f64,
    /// Least standard deviation of a combination's own effect.
    pub own: f64,
    /// Weight and standard deviation of the heavy tail of that effect.
    pub tail: (f64, f64),
    /// Weight of what variances are thought to be before anything is seen.
    pub doubt: f64,
    /// The same for variances of effects.
    pub doubt_effects: f64,
    /// The same for own effects.
    pub doubt_own: f64,
    /// Weight of the variance that a mean lets one expect against the row's own.
    pub loads: f64,
    /// Whether chances are put together by draws, not added.
    pub joint: f64,
    /// Steps towards the scales, a round.
    pub sweeps: usize,
    /// Least variance of a score near the ends.
    pub floor: f64,
    /// Guess of own effects.
    pub own_guess: f64,
    /// How far the logistic curve is followed.
    pub link: f64,
    /// Least slope for own effects.
    pub width: f64,
    /// Load of shared.
    pub lam: f64,
    /// Share of alpha that the search stops at.
    pub stop: f64,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            first: 6,
            leader: 16,
            caution: 1.0,
            few: 0.0,
            step: 0.25,
            band: 0.6,
            own: 0.015,
            tail: (0.01, 0.2),
            doubt: 4.0,
            doubt_effects: 2.0,
            doubt_own: 4.0,
            loads: 1e9,
            joint: 1.0,
            sweeps: 8,
            stop: 1.0,
            lam: 1.0,
            link: 0.8,
            width: 0.5,
            own_guess: 0.04,
            floor: 0.03,
        }
    }
}
