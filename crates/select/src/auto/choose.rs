//! Final choice of `auto`, its confidence, and the reason to stop.

use super::Auto;
use super::guard::Guard;
use super::rivals::Rivals;
use crate::selector::SelectorChoice;

/// Largest cost, relative to the leader's, that justifies a change of the winner.
const MAX_COST_RATIO: f64 = 0.95;

/// Standard errors between the measured gap and ε for a combination to be as good.
const DEVIATIONS: f64 = 1.7;

/// Prior variance of a paired difference, and the number of cells it weighs as much as.
const PRIOR_VARIANCE: f64 = 0.1;
const PRIOR_CELLS: f64 = 4.0;

impl Auto {
    /// Whether a combination is at most ε worse than the leader by a paired test on their common datapoints.
    fn is_as_good(&self, arm: usize, leader: usize) -> bool {
        let pairs = self.table.row(arm).iter().zip(self.table.row(leader));
        let gaps: Vec<f64> =
            pairs.map(|(arm, leader)| leader - arm).filter(|gap| !gap.is_nan()).collect();
        let (n, total) = (gaps.len() as f64, self.table.total() as f64);
        if n < 2.0 {
            return false;
        }
        let mean = gaps.iter().sum::<f64>() / n;
        let squares: f64 = gaps.iter().map(|gap| (gap - mean).powi(2)).sum();
        let variance = (squares + PRIOR_CELLS * PRIOR_VARIANCE) / (n - 1.0 + PRIOR_CELLS);
        let error = (variance * (1.0 / n - 1.0 / total).max(0.0)).sqrt();
        mean + DEVIATIONS * error <= self.options.epsilon + 1e-9
    }

    /// Returns the leader, or the cheapest combination that is as good within the remaining error
    /// probability.
    pub(super) fn final_choice(
        &self,
        rivals: &Rivals<'_>,
        any_better: f64,
        guard: &Guard,
    ) -> SelectorChoice {
        let (alpha, leader) = (1.0 - self.options.confidence, rivals.leader);
        let is_complete = |arm: usize| self.table.depth(arm) == self.table.total();
        let mut choice = (leader, 0.0);
        for arm in (0..self.table.arms()).filter(|&arm| arm != leader) {
            let is_cheaper =
                |ratio: f64, than: usize| match (self.table.cost(arm), self.table.cost(than)) {
                    (Some(cost), Some(other)) => cost < ratio * other,
                    // An unknown cost is neither less nor more than another.
                    _ => false,
                };
            if is_cheaper(MAX_COST_RATIO, leader) && is_cheaper(1.0, choice.0) {
                // If both are evaluated completely, only a tie is as good.
                let worse = rivals.worse(arm, is_complete(arm) && is_complete(leader));
                if any_better + worse <= alpha && self.is_as_good(arm, leader) {
                    choice = (arm, worse);
                }
            }
        }
        let epsilon = self.options.epsilon;
        let error = (any_better + choice.1).min(1.0);
        let mut reason = if error <= alpha {
            let percent = (1e5 * alpha).round() / 1e3;
            format!(
                "the probability that a rival is better by more than {epsilon} is below {percent} %"
            )
        } else {
            "no further cell would change the estimate".to_owned()
        };
        if choice.0 != leader {
            reason.push_str("; it is the cheapest of equally good combinations");
        }
        let confidence =
            if guard.is_certain() && error <= 0.0 { 1.0 } else { self.claim(1.0 - error, guard) };
        SelectorChoice { combo: choice.0, confidence: Some(confidence), reason }
    }

    /// Returns the confidence that may be claimed: that of the model, but not more than the bets confirm, and not more than
    /// was required, since the model alone excludes the rivals without a bet.
    pub(super) fn claim(&self, model: f64, guard: &Guard) -> f64 {
        model.min(guard.confidence()).min(self.options.confidence).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::AutoOptions;
    use crate::auto::table::ScoreTable;
    use crate::testing::{filled, space};

    /// Whether a combination with this score of every datapoint is as good as one with 0.8, after a number of 200 cells.
    fn is_as_good(score: f64, cells: usize) -> bool {
        let space = space(2, 200);
        let rows = [vec![Some(score); cells], vec![Some(0.8); cells]];
        let evidence = filled(&space, &rows);
        let mut auto = Auto::new(&space, AutoOptions::default());
        auto.table = ScoreTable::in_order(&space);
        (0..2).for_each(|arm| drop(auto.table.advance(arm, cells, &evidence)));
        auto.table.update(&evidence);
        auto.is_as_good(0, 1)
    }

    #[test]
    fn cheaper_choice_needs_enough_cells_without_a_difference() {
        // Without any variance in the differences, that of the prior remains.
        assert_eq!(
            [1, 20, 100, 200].map(|cells| is_as_good(0.8, cells)),
            [false, false, true, true]
        );
        assert_eq!([100, 200].map(|cells| is_as_good(0.79, cells)), [false, true]);
        assert!(!is_as_good(0.78, 200));
    }
}
