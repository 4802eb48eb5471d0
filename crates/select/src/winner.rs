//! Choice of the best among the remaining combinations.
//!
//! An errored cell is missing data, so a combination that errors on all but one lucky datapoint has a
//! mean of 1. It must not win by that: a combination with a larger share of errors than
//! [`MAX_ERROR_SHARE`] wins only if it also wins with its errors counted as zeros.

use crate::evidence::{Evidence, ScoreStats};
use crate::money::model_dollars;
use std::cmp::Ordering;

/// Share of errors up to which a combination is judged by its scores alone.
pub(crate) const MAX_ERROR_SHARE: f64 = 0.05;

/// Differences below this are ties: sums of the same scores in a different order.
pub(crate) const TIE: f64 = 1e-9;

/// Whether so many cells of a combination errored that its mean alone is not trusted.
pub(crate) fn is_error_prone(evidence: &Evidence, combo: usize) -> bool {
    let (visited, errored) = evidence.visited(combo);
    errored as f64 > MAX_ERROR_SHARE * visited as f64
}

/// Lower bound with which a combination can eliminate others; errors of an error-prone one are zeros.
pub(crate) fn defeating_bound(evidence: &Evidence, combo: usize, width: f64) -> f64 {
    let lower = |stats: ScoreStats| stats.mean - width * stats.standard_error();
    let bound = lower(evidence.stats(combo));
    if is_error_prone(evidence, combo) {
        bound.min(lower(evidence.stats_with_errors_as_zero(combo)))
    } else {
        bound
    }
}

/// Upper bound of the value with which a combination can win; infinite for one without observations.
///
/// Errors of an error-prone combination are zeros, since it must win with them as well.
pub(crate) fn winning_bound(evidence: &Evidence, combo: usize, width: f64) -> f64 {
    let upper = |stats: ScoreStats| stats.mean + width * stats.standard_error();
    let stats = evidence.stats(combo);
    let bound = if stats.n == 0 { f64::INFINITY } else { upper(stats) };
    if is_error_prone(evidence, combo) {
        bound.min(upper(evidence.stats_with_errors_as_zero(combo)))
    } else {
        bound
    }
}

/// Mean of a combination, with errors as zeros if it is error-prone; `None` without observations.
pub(crate) fn adjusted_mean(evidence: &Evidence, combo: usize) -> Option<f64> {
    let stats = evidence.stats(combo);
    let mean = match is_error_prone(evidence, combo) {
        true => stats.mean.min(evidence.stats_with_errors_as_zero(combo).mean),
        false => stats.mean,
    };
    (stats.n > 0).then_some(mean)
}

/// Returns the best of `combos`; `None` if none has a score.
pub(crate) fn best(evidence: &Evidence, combos: impl IntoIterator<Item = usize>) -> Option<usize> {
    best_by(evidence, combos, |stats| stats.mean)
}

/// Returns the best of `combos` in a search that was stopped.
///
/// Combinations have unequal numbers of cells, and the mean alone would favour one lucky datapoint.
/// The spread is pooled, because that of a few equal scores is zero.
pub(crate) fn best_so_far(
    evidence: &Evidence,
    combos: impl IntoIterator<Item = usize>,
) -> Option<usize> {
    let combos: Vec<usize> = combos.into_iter().collect();
    let (mut squares, mut degrees) = (0.0, 0_usize);
    for stats in combos.iter().map(|combo| evidence.stats(*combo)).filter(|stats| stats.n > 1) {
        squares += stats.deviation * stats.deviation * (stats.n - 1) as f64;
        degrees += stats.n - 1;
    }
    let spread = if degrees == 0 { 0.5 } else { (squares / degrees as f64).sqrt() };
    best_by(evidence, combos, |stats| stats.mean - spread / (stats.n.max(1) as f64).sqrt())
}

fn best_by(
    evidence: &Evidence,
    combos: impl IntoIterator<Item = usize>,
    of: impl Fn(ScoreStats) -> f64,
) -> Option<usize> {
    let stats = combos.into_iter().map(|combo| (combo, evidence.stats(combo)));
    let mut remaining: Vec<(usize, f64)> =
        stats.filter(|(_, stats)| stats.n > 0).map(|(combo, stats)| (combo, of(stats))).collect();
    let with_errors = |combo: usize| of(evidence.stats_with_errors_as_zero(combo));
    let bar = remaining.iter().map(|(combo, _)| with_errors(*combo)).max_by(f64::total_cmp)?;
    // The combination that sets the bar passes it, so one is always found.
    while let Some(leader) = lead(evidence, &remaining) {
        if !is_error_prone(evidence, leader) || with_errors(leader) >= bar - TIE {
            return Some(leader);
        }
        remaining.retain(|(combo, _)| *combo != leader);
    }
    None
}

/// Returns the leader; ties go to the cheaper, then the first combination.
fn lead(evidence: &Evidence, combos: &[(usize, f64)]) -> Option<usize> {
    let leader = combos.iter().reduce(|leader, other| {
        match compare(evidence, other.1, other.0, leader.1, leader.0) {
            Ordering::Greater => other,
            _ => leader,
        }
    });
    leader.map(|(combo, _)| *combo)
}

/// Compares `one`, with mean `value`, to `two`, with mean `rival`.
pub(crate) fn compare(
    evidence: &Evidence,
    value: f64,
    one: usize,
    rival: f64,
    two: usize,
) -> Ordering {
    if (value - rival).abs() > TIE || value.is_nan() || rival.is_nan() {
        return value.total_cmp(&rival);
    }
    // Not by latency: measured latencies depend on how many cells run at once, and so would the choice.
    let cost = |combo: usize| evidence.mean_cost(combo).map_or(f64::INFINITY, model_dollars);
    cost(two).total_cmp(&cost(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dollars, filled, space};

    #[test]
    fn one_lucky_success_does_not_win() {
        let space = space(2, 10);
        let mut lucky = vec![None; 10];
        lucky[3] = Some(1.0);
        let steady = [vec![Some(1.0); 9], vec![Some(0.0)]].concat();
        let evidence = filled(&space, &[lucky, steady]);
        assert_eq!(best(&evidence, 0..2), Some(1));
        assert_eq!(best_so_far(&evidence, 0..2), Some(1));
    }

    #[test]
    fn error_prone_combination_can_still_win() {
        let space = space(2, 10);
        let error_prone = [vec![Some(1.0); 8], vec![None; 2]].concat();
        let weak = [vec![Some(1.0); 5], vec![Some(0.0); 5]].concat();
        assert_eq!(best(&filled(&space, &[error_prone, weak]), 0..2), Some(0));
    }

    #[test]
    fn combination_without_scores_is_not_chosen() {
        let space = space(3, 4);
        let evidence = filled(&space, &[vec![None; 4], vec![], vec![Some(0.0)]]);
        assert_eq!(best(&evidence, 0..3), Some(2));
        assert_eq!(best(&evidence, 0..2), None);
    }

    #[test]
    fn stopped_search_does_not_choose_a_single_lucky_datapoint() {
        let space = space(2, 20);
        let steady = [vec![Some(1.0); 18], vec![Some(0.0); 2]].concat();
        let evidence = filled(&space, &[vec![Some(1.0)], steady]);
        assert_eq!(best(&evidence, 0..2), Some(0));
        assert_eq!(best_so_far(&evidence, 0..2), Some(1));
    }

    #[test]
    fn ties_go_to_the_cheaper_whatever_the_latency() {
        use crate::{Cell, Evidence, Objective, Observation};
        let space = space(3, 1);
        for (cells, winner) in [
            ([(1.0, 2.0), (1.0, 1.0), (0.5, 1.0)], 2),
            ([(1.0, 2.0), (1.0, 1.0), (2.0, 1.0)], 0),
            ([(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)], 0),
        ] {
            let mut evidence = Evidence::new(&space, Objective::default());
            for (combo, (cost, latency)) in cells.into_iter().enumerate() {
                let cost = dollars(cost);
                let observation =
                    Observation { score: Some(0.5), cost: Some(cost), paid: cost, latency };
                evidence.add(Cell { combo, datapoint: 0 }, observation);
            }
            assert_eq!(best(&evidence, 0..3), Some(winner));
        }
    }
}
