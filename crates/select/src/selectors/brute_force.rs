//! Evaluation of every cell: the baseline for all other selectors.

use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Selector, SelectorStep};
use crate::space::Space;

/// Evaluates every cell.
#[derive(Debug, Clone)]
pub struct BruteForce {
    plan: Plan,
}

impl BruteForce {
    /// Creates the selector. The seed fixes the order of the datapoints, which matters under a budget.
    pub fn new(space: &Space, seed: u64) -> BruteForce {
        BruteForce { plan: Plan::new(space, seed) }
    }
}

impl Selector for BruteForce {
    fn name(&self) -> &'static str {
        "brute_force"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        let round = self.plan.full_round(evidence, 0..self.plan.combos);
        if round.cells.is_empty() {
            return Plan::choose(evidence, 0..self.plan.combos, "every cell was evaluated");
        }
        SelectorStep::Evaluate(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, run, space};

    #[test]
    fn every_cell_is_evaluated_once() {
        let space = space(3, 4);
        let score = |cell: crate::Cell| Some(f64::from(cell.combo == 1));
        let (rounds, end, evidence) = run(&space, &mut BruteForce::new(&space, 1), score);
        assert_eq!((rounds.len(), rounds[0].batch, evidence.cells()), (1, 4, 12));
        assert_eq!(chosen(&end), 1);
    }

    #[test]
    fn errors_alone_have_no_winner() {
        let space = space(3, 4);
        let (_, end, evidence) = run(&space, &mut BruteForce::new(&space, 1), |_| None);
        assert!(matches!(end, SelectorStep::NoWinner(_)));
        assert_eq!(evidence.cells(), 12);
    }
}
