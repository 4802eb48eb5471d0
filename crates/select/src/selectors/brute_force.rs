//! Evaluation of every cell: the baseline for all other selectors.

use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Selector, SelectorStep};
use crate::space::Space;

/// Evaluates every cell.
#[derive(Debug, Clone)]
pub struct BruteForce {
    plan: Plan,
    has_budget: bool,
}

impl BruteForce {
    /// Creates the selector. The seed fixes the order of the datapoints, which matters under a budget.
    pub fn new(space: &Space, seed: u64) -> BruteForce {
        BruteForce { plan: Plan::new(space, seed), has_budget: false }
    }

    /// Sets whether a budget may end the search: then all combinations are evaluated on a few datapoints at a time, so
    /// that they are comparable at any time.
    #[must_use]
    pub fn with_budget(self, has_budget: bool) -> BruteForce {
        BruteForce { has_budget, ..self }
    }
}

impl Selector for BruteForce {
    fn name(&self) -> &'static str {
        "brute_force"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        let combos = 0..self.plan.combos;
        let round = match self.has_budget {
            true => self.plan.next_datapoints(evidence, combos),
            false => self.plan.full_round(evidence, combos),
        };
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
    fn budget_compares_combinations_on_the_same_datapoints() {
        let space = space(3, 40);
        let score = |cell: crate::Cell| Some(f64::from(cell.combo == 1));
        let mut selector = BruteForce::new(&space, 1).with_budget(true);
        let (rounds, end, evidence) = run(&space, &mut selector, score);
        let sizes: Vec<usize> = rounds.iter().map(|round| round.cells.len()).collect();
        assert_eq!(sizes, [3, 21, 21, 21, 21, 21, 12]);
        assert_eq!((rounds[1].batch, evidence.cells(), chosen(&end)), (7, 120, 1));
    }

    #[test]
    fn errors_alone_have_no_winner() {
        let space = space(3, 4);
        let (_, end, evidence) = run(&space, &mut BruteForce::new(&space, 1), |_| None);
        assert!(matches!(end, SelectorStep::NoWinner(_)));
        assert_eq!(evidence.cells(), 12);
    }
}
