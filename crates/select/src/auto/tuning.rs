//! Constants, and why they are what they are.

/// What was found by replaying made matrices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Cells that each combination gets first. With 4 or 8 it is much the same: fewer make the first
    /// guesses worse, more cost more.
    pub first: usize,
    /// Least depth of the winner: the luckiest of many is lucky for a while.
    pub leader: usize,
    /// Factor of all standard deviations. With 1 the find rate on made matrices is 0.992 for 0.92 of
    /// the money of arm elimination, with 0.92 it is 0.988 for 0.83, with 0.85 it is 0.978 for 0.75,
    /// and below 0.95 on some kinds.
    pub caution: f64,
    /// The variances themselves are less known the fewer combinations there are: the squared factor
    /// grows by this over their number.
    pub few: f64,
    /// Depths are this share apart: some 16 for 200 datapoints, so that few blocks differ in who saw
    /// them.
    pub step: f64,
    /// Who is worth at least this share of the worthiest's money is in the round. With 0.1 rounds are
    /// wide, and the search costs a third more; with 0.9 there are twice the rounds for 5 % less.
    pub band: f64,
    /// Standard deviation of a combination's own effect, as thought before anything is seen.
    pub own: f64,
    /// The same where there is one role, so that own effects are those of its models. With 0.05 the
    /// find rate fell to 0.89.
    pub alone: f64,
    /// The least that the data can make of either: combinations are never quite the sum of their parts.
    pub least_own: f64,
    /// Weight and standard deviation of the heavy tail of own effects. Without, needles are missed
    /// now and then; with a weight of 0.03 everybody might be one, and the search costs 7 % more.
    pub tail: (f64, f64),
    /// Weight, in datapoints, of what variances were thought to be before anything was seen. Half or
    /// twice of it is much the same; with none, six right answers would end the search.
    pub doubt: f64,
    /// The same for effects, in candidates.
    pub doubt_effects: f64,
    /// The same for own effects, in combinations.
    pub doubt_own: f64,
    /// Least variance of a score near 0 or 1: that of 97 % right. Less trusts a run of right answers
    /// too much; one variance for all (0.25) costs 6 % more.
    pub least: f64,
    /// Steps of fitting before the first choice; then there is one a round. More make it too sure of
    /// variances that six datapoints gave.
    pub sweeps: usize,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            first: 6,
            leader: 16,
            caution: 0.9,
            few: 3.0,
            step: 0.25,
            band: 0.6,
            own: 0.05,
            alone: 0.25,
            least_own: 0.015,
            tail: (0.01, 0.2),
            doubt: 4.0,
            doubt_effects: 2.0,
            doubt_own: 4.0,
            least: 0.03,
            sweeps: 8,
        }
    }
}
