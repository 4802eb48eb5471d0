//! Who is best, of those that are left.
//!
//! An errored cell is missing, so a combination that errs on all but one lucky datapoint has a mean
//! of 1. It must not win by that: one with more errors than [`MOST_ERRORS`] wins only if it also wins
//! with its errors counted as zeros.

use crate::evidence::{Evidence, RowFigures};
use std::cmp::Ordering;

/// Share of errors up to which a combination is judged by what it answered alone.
pub(crate) const MOST_ERRORS: f64 = 0.05;

/// Differences below this are ties: sums of the same scores in another order.
pub(crate) const TIE: f64 = 1e-9;

/// Whether so many of a combination's cells errored that its mean cannot be taken as it is.
pub(crate) fn errs(evidence: &Evidence, combo: usize) -> bool {
    let (visited, missing) = evidence.visited(combo);
    missing as f64 > MOST_ERRORS * visited as f64
}

/// The lower bound that a combination can defeat others by: with errors as zeros where it errs.
pub(crate) fn defeating_bound(evidence: &Evidence, combo: usize, width: f64) -> f64 {
    let lower = |figures: RowFigures| figures.mean - width * figures.standard_error();
    let bound = lower(evidence.figures(combo));
    if errs(evidence, combo) {
        bound.min(lower(evidence.figures_with_errors(combo)))
    } else {
        bound
    }
}

/// The upper bound of what a combination can win by: with errors as zeros where it errs, since it must
/// win with them as well. Nothing is above one that nobody has tried.
pub(crate) fn winning_bound(evidence: &Evidence, combo: usize, width: f64) -> f64 {
    let upper = |figures: RowFigures| figures.mean + width * figures.standard_error();
    let figures = evidence.figures(combo);
    let bound = if figures.n == 0 { f64::INFINITY } else { upper(figures) };
    if errs(evidence, combo) {
        bound.min(upper(evidence.figures_with_errors(combo)))
    } else {
        bound
    }
}

/// What a combination is worth: its mean, with errors as zeros where it errs. `None` when nothing was
/// observed of it.
pub(crate) fn standing(evidence: &Evidence, combo: usize) -> Option<f64> {
    let figures = evidence.figures(combo);
    let mean = match errs(evidence, combo) {
        true => figures.mean.min(evidence.figures_with_errors(combo).mean),
        false => figures.mean,
    };
    (figures.n > 0).then_some(mean)
}

/// The best of `combos`; `None` when nothing was observed of any.
pub(crate) fn best(evidence: &Evidence, combos: impl IntoIterator<Item = usize>) -> Option<usize> {
    best_by(evidence, combos, |figures| figures.mean)
}

/// The best so far, of a search that was stopped: combinations have been seen unequally often, so
/// that the mean alone would favour whoever had one lucky datapoint. The spread is pooled, since that
/// of a few equal scores is zero.
pub(crate) fn best_so_far(
    evidence: &Evidence,
    combos: impl IntoIterator<Item = usize>,
) -> Option<usize> {
    let combos: Vec<usize> = combos.into_iter().collect();
    let (mut squares, mut freedom) = (0.0, 0_usize);
    for figures in combos.iter().map(|combo| evidence.figures(*combo)).filter(|seen| seen.n > 1) {
        squares += figures.deviation * figures.deviation * (figures.n - 1) as f64;
        freedom += figures.n - 1;
    }
    let spread = if freedom == 0 { 0.5 } else { (squares / freedom as f64).sqrt() };
    best_by(evidence, combos, |figures| figures.mean - spread / (figures.n.max(1) as f64).sqrt())
}

fn best_by(
    evidence: &Evidence,
    combos: impl IntoIterator<Item = usize>,
    of: impl Fn(RowFigures) -> f64,
) -> Option<usize> {
    let seen = combos.into_iter().map(|combo| (combo, evidence.figures(combo)));
    let mut left: Vec<(usize, f64)> =
        seen.filter(|(_, figures)| figures.n > 0).map(|(combo, seen)| (combo, of(seen))).collect();
    let strict = |combo: usize| of(evidence.figures_with_errors(combo));
    let bar = left.iter().map(|(combo, _)| strict(*combo)).max_by(f64::total_cmp)?;
    // Whoever is at the bar passes, so that somebody is found.
    while let Some(leader) = lead(evidence, &left) {
        if !errs(evidence, leader) || strict(leader) >= bar - TIE {
            return Some(leader);
        }
        left.retain(|(combo, _)| *combo != leader);
    }
    None
}

/// Ties go to the faster, then to the cheaper, then to the first.
fn lead(evidence: &Evidence, combos: &[(usize, f64)]) -> Option<usize> {
    let leader = combos.iter().reduce(|leader, other| {
        match compare(evidence, other.1, other.0, leader.1, leader.0) {
            Ordering::Greater => other,
            _ => leader,
        }
    });
    leader.map(|(combo, _)| *combo)
}

/// Whether `one`, worth `value`, is better than `two`, worth `rival`.
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
    let less = |one: Option<f64>, two: Option<f64>| {
        let (one, two) = (one.unwrap_or(f64::INFINITY), two.unwrap_or(f64::INFINITY));
        two.total_cmp(&one)
    };
    less(evidence.mean_latency(one), evidence.mean_latency(two))
        .then_with(|| less(evidence.mean_cost(one), evidence.mean_cost(two)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{filled, space};

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
    fn who_errs_can_still_be_best() {
        let space = space(2, 10);
        let erring = [vec![Some(1.0); 8], vec![None; 2]].concat();
        let weak = [vec![Some(1.0); 5], vec![Some(0.0); 5]].concat();
        assert_eq!(best(&filled(&space, &[erring, weak]), 0..2), Some(0));
    }

    #[test]
    fn nobody_is_chosen_unseen() {
        let space = space(3, 4);
        let evidence = filled(&space, &[vec![None; 4], vec![], vec![Some(0.0)]]);
        assert_eq!(best(&evidence, 0..3), Some(2));
        assert_eq!(best(&evidence, 0..2), None);
    }

    #[test]
    fn one_datapoint_is_not_enough_for_a_search_that_was_stopped() {
        let space = space(2, 20);
        let seen = [vec![Some(1.0); 18], vec![Some(0.0); 2]].concat();
        let evidence = filled(&space, &[vec![Some(1.0)], seen]);
        assert_eq!(best(&evidence, 0..2), Some(0));
        assert_eq!(best_so_far(&evidence, 0..2), Some(1));
    }

    #[test]
    fn ties_go_to_the_faster_then_to_the_cheaper() {
        use crate::{Cell, Evidence, Objective, Observation};
        let space = space(3, 1);
        for (figures, winner) in [
            ([(1.0, 2.0), (1.0, 1.0), (0.5, 1.0)], 2),
            ([(1.0, 2.0), (1.0, 1.0), (2.0, 1.0)], 1),
            ([(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)], 0),
        ] {
            let mut evidence = Evidence::new(&space, Objective::default());
            for (combo, (cost, latency)) in figures.into_iter().enumerate() {
                let seen = Observation { score: Some(0.5), cost, paid: cost, latency };
                evidence.add(Cell { combo, datapoint: 0 }, seen);
            }
            assert_eq!(best(&evidence, 0..3), Some(winner));
        }
    }
}
