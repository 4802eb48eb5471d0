//! Every cell: what all others are measured by.

use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Selector, Step};
use crate::space::Space;

/// Pays for every cell.
#[derive(Debug, Clone)]
pub struct BruteForce {
    plan: Plan,
}

impl BruteForce {
    /// Datapoints are visited in an order that the seed fixes, which matters when a budget ends it.
    pub fn new(space: &Space, seed: u64) -> BruteForce {
        BruteForce { plan: Plan::new(space, seed) }
    }
}

impl Selector for BruteForce {
    fn name(&self) -> &'static str {
        "brute_force"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        let round = self.plan.whole(evidence, 0..self.plan.combos);
        if round.cells.is_empty() {
            return Plan::choose(evidence, 0..self.plan.combos, "every cell was evaluated");
        }
        Step::Evaluate(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, run, space};

    #[test]
    fn every_cell_is_paid_for_once() {
        let space = space(3, 4);
        let score = |cell: crate::Cell| Some(f64::from(cell.combo == 1));
        let (rounds, end, evidence) = run(&space, &mut BruteForce::new(&space, 1), score);
        assert_eq!((rounds.len(), rounds[0].batch, evidence.cells()), (1, 4, 12));
        assert_eq!(chosen(&end), 1);
    }

    #[test]
    fn nobody_is_chosen_when_all_errs() {
        let space = space(3, 4);
        let (_, end, evidence) = run(&space, &mut BruteForce::new(&space, 1), |_| None);
        assert!(matches!(end, Step::GiveUp(_)));
        assert_eq!(evidence.cells(), 12);
    }
}
