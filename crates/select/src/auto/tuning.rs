//! Tuning constants of `auto`, with the measurements behind them.

/// Constants found by replaying generated matrices.
///
/// Find rates and costs in the field docs are from those replays, without bets unless stated; costs are shares of the cost
/// of `arm_elimination`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoTuning {
    /// Cells of each combination in the first round. 4 and 8 perform about the same: fewer make the
    /// first estimates worse, more cost more.
    pub first_cells: usize,
    /// Minimum depth of the winner: the luckiest of many combinations stays lucky for a while.
    pub min_winner_depth: usize,
    /// Factor on all standard deviations. It may be below 1, since bets confirm the leader: with 0.9, find rates are the
    /// same and recorded matrices cost 4 % more.
    pub deviation_factor: f64,
    /// Variances are less certain with fewer combinations: the squared factor grows by this over their
    /// number.
    pub small_space_inflation: f64,
    /// Relative distance between depths: about 16 depths for 200 datapoints, so there are few blocks.
    pub depth_step: f64,
    /// Combinations whose value per cost is at least this share of the highest join the round. With 0.1
    /// rounds are wide and the search costs a third more; 0.9 doubles the rounds and saves 5 %.
    pub round_band: f64,
    /// Prior standard deviation of a combination's own effect.
    pub own_deviation: f64,
    /// The same with a single role, where own effects are those of the candidates. With 0.05 the find
    /// rate fell to 0.89.
    pub single_role_deviation: f64,
    /// Lower bound of either after fitting: a combination is never exactly the sum of its parts.
    pub min_own_deviation: f64,
    /// Weight and standard deviation of the heavy tail of own effects. Without it, an outstanding
    /// combination is missed now and then; a weight of 0.03 costs 7 % more.
    pub tail: (f64, f64),
    /// Weight of the prior variances, in datapoints. Half or twice of it performs about the same; with 0,
    /// six passes would end the search.
    pub prior_datapoints: f64,
    /// Weight of the prior variance of effects, in candidates.
    pub prior_candidates: f64,
    /// Weight of the prior variance of own effects, in combinations.
    pub prior_combos: f64,
    /// Minimum variance of a score near 0 or 1: that of a pass rate of 97 %. A smaller one trusts a run
    /// of passes too much; a single variance for all (0.25) costs 6 % more.
    pub min_score_variance: f64,
    /// Fitting steps before the first choice; afterwards there is one per round. More overfit the
    /// variances to six datapoints.
    pub initial_fits: usize,
}

impl Default for AutoTuning {
    fn default() -> AutoTuning {
        AutoTuning {
            first_cells: 6,
            min_winner_depth: 16,
            deviation_factor: 0.8,
            small_space_inflation: 3.0,
            depth_step: 0.25,
            round_band: 0.6,
            own_deviation: 0.05,
            single_role_deviation: 0.25,
            min_own_deviation: 0.015,
            tail: (0.01, 0.2),
            prior_datapoints: 4.0,
            prior_candidates: 2.0,
            prior_combos: 4.0,
            min_score_variance: 0.03,
            initial_fits: 8,
        }
    }
}
