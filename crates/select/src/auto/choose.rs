//! Final choice of `auto`, its confidence, and the reason to stop.

use super::Auto;
use super::rivals::Rivals;
use crate::selector::SelectorChoice;

/// Largest cost, relative to the leader's, that justifies a change of the winner.
const MAX_COST_RATIO: f64 = 0.95;

impl Auto {
    /// Returns the leader, or the cheapest combination that is as good within the remaining error
    /// probability.
    pub(super) fn final_choice(&self, rivals: &Rivals<'_>, any_better: f64) -> SelectorChoice {
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
                if any_better + worse <= alpha {
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
        SelectorChoice { combo: choice.0, confidence: Some(1.0 - error), reason }
    }
}
