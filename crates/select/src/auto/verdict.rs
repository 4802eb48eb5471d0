//! Who is chosen, how sure that is, and why the search stopped.

use super::Auto;
use super::rivals::Rivals;
use crate::selector::Choice;

/// What a price must be, beside the leader's, to be worth a change.
const CHEAPER: f64 = 0.95;

impl Auto {
    /// The leader, or the cheapest that is as good, as far as the error that is left allows.
    pub(super) fn verdict(&self, rivals: &Rivals<'_>, doubt: f64) -> Choice {
        let (enough, leader) = (1.0 - self.options.confidence, rivals.leader);
        let complete = |arm: usize| self.table.depth(arm) == self.table.total();
        let mut choice = (leader, 0.0);
        for arm in (0..self.table.arms()).filter(|&arm| arm != leader) {
            let price = self.price(arm);
            if price < CHEAPER * self.price(leader) && price < self.price(choice.0) {
                // Where both are known to the end, only a tie is as good.
                let worse = rivals.worse(arm, complete(arm) && complete(leader));
                if doubt + worse <= enough {
                    choice = (arm, worse);
                }
            }
        }
        let epsilon = self.options.epsilon;
        let doubt = (doubt + choice.1).min(1.0);
        let mut reason = if doubt <= enough {
            let percent = (1e5 * enough).round() / 1e3;
            format!("no rival is better by more than {epsilon} with a chance above {percent} %")
        } else {
            "nothing that could tell more is left".to_owned()
        };
        if choice.0 != leader {
            reason.push_str("; the cheapest of those that are as good");
        }
        Choice { combo: choice.0, confidence: Some(1.0 - doubt), reason }
    }
}
