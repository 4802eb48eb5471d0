//! Search over recorded cells, one at a time and without waiting.

use crate::budget::{BudgetMeter, CellStart, SearchBudget};
use crate::evidence::Observation;
use crate::objective::Objective;
use crate::outcome::SearchOutcome;
use crate::search::{SearchAction, SearchState, SelectError, sanitize};
use crate::selector::Selector;
use crate::space::{Cell, Space};
use std::time::Duration;

/// Runs a search on recorded or generated cells.
///
/// # Errors
///
/// No combination can be chosen, or the selector broke its contract.
pub fn replay(
    space: &Space,
    selector: &mut dyn Selector,
    mut observe: impl FnMut(Cell) -> Observation,
    objective: Objective,
    budget: SearchBudget,
) -> Result<SearchOutcome, SelectError> {
    let mut search = SearchState::new(space, selector, objective, Vec::new(), None)?;
    let (mut meter, mut elapsed) = (BudgetMeter::new(budget), Duration::ZERO);
    loop {
        let cells = match search.next()? {
            SearchAction::Evaluate(cells) => cells,
            SearchAction::Finish(outcome) => return Ok(*outcome),
        };
        let mut observed = Vec::with_capacity(cells.len());
        for (cell, _) in cells {
            if meter.start(elapsed) != CellStart::Started {
                break;
            }
            let observation = sanitize(observe(cell));
            meter.pay(observation.paid);
            elapsed = elapsed.saturating_add(
                Duration::try_from_secs_f64(observation.latency).unwrap_or_default(),
            );
            observed.push((cell, observation));
        }
        search.add(observed);
        if let Some(limit) = meter.stopped() {
            return search.stop(limit).map(|outcome| *outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::{Elimination, EvaluationRound, SelectorChoice, SelectorStep};
    use crate::testing::{dollars, observed, space};
    use crate::{BruteForce, Evidence, SearchLimit};
    use bakeoff_core::NanoDollars;

    fn brute_force(budget: SearchBudget) -> Result<SearchOutcome, SelectError> {
        let space = space(3, 10);
        let observe = |cell: Cell| observed(Some([0.4, 0.8, 0.6][cell.combo]));
        replay(&space, &mut BruteForce::new(&space, 1), observe, Objective::default(), budget)
    }

    #[test]
    fn best_combination_wins() {
        let outcome = brute_force(SearchBudget::default()).unwrap();
        assert_eq!((outcome.winner, outcome.cells, outcome.stopped), (1, 30, None));
    }

    #[test]
    fn exhausted_budget_returns_the_best_so_far() {
        let time = Some(Duration::from_secs(5));
        let none = SearchBudget::default();
        for (budget, limit, cells, winner) in [
            (SearchBudget { cost: Some(dollars(15.0)), ..none }, SearchLimit::Cost, 15, 1),
            (SearchBudget { cells: Some(10), ..none }, SearchLimit::Cells, 10, 0),
            (SearchBudget { time, ..none }, SearchLimit::Time, 5, 0),
        ] {
            let outcome = brute_force(budget).unwrap();
            assert_eq!((outcome.stopped, outcome.cells), (Some(limit), cells));
            assert_eq!((outcome.winner, outcome.confidence), (winner, None));
        }
        // A budget that is just sufficient stops nothing.
        let outcome = brute_force(SearchBudget { cells: Some(30), ..none }).unwrap();
        assert_eq!(outcome.stopped, None);
        let error = brute_force(SearchBudget { cells: Some(0), ..none }).unwrap_err();
        assert!(matches!(error, SelectError::NothingObserved(_)));
    }

    #[test]
    fn stopped_search_reports_confidence_if_the_selector_has_one() {
        let space = space(3, 40);
        let observe = |cell: Cell| observed(Some(f64::from(cell.datapoint % 3 <= cell.combo)));
        let stopped = |name: &str, cells: usize| {
            let mut selector = crate::build_selector(name, &space, &Default::default()).unwrap();
            let budget = SearchBudget { cells: Some(cells), ..SearchBudget::default() };
            replay(&space, selector.as_mut(), observe, Objective::default(), budget).unwrap()
        };
        let outcome = stopped("auto", 22);
        assert_eq!((outcome.winner, outcome.stopped), (2, Some(SearchLimit::Cells)));
        assert!(outcome.confidence.is_some_and(|it| it > 0.0 && it < 0.95), "{outcome:?}");
        assert_eq!(stopped("arm_elimination", 22).confidence, None);
    }

    #[test]
    fn winner_is_the_best_within_the_cost_limit() {
        let space = space(3, 10);
        let observe = |cell: Cell| Observation {
            cost: Some(dollars(1.0 + cell.combo as f64)),
            ..observed(Some(0.1 * cell.combo as f64))
        };
        let under = |amount: f64, name: &str| {
            let max_cost = Some(dollars(amount));
            let objective = Objective { max_cost, ..Objective::default() };
            let mut selector = crate::build_selector(name, &space, &Default::default()).unwrap();
            replay(&space, selector.as_mut(), observe, objective, SearchBudget::default())
        };
        for name in ["auto", "strict", "brute_force", "arm_elimination", "matrix_ucb"] {
            assert_eq!(under(2.5, name).unwrap().winner, 1, "{name}");
        }
        let error = under(0.5, "auto").unwrap_err().to_string();
        let cheapest = "the cheapest is r0=m0 at $1.000000 per datapoint";
        assert_eq!(error, format!("no combination is within the cost limit; {cheapest}"));
        // The message says if not all combinations were evaluated.
        let error = under(0.5, "random_search").unwrap_err().to_string();
        assert!(error.starts_with("no evaluated combination is within"), "{error}");
    }

    #[test]
    fn search_ends_once_all_combinations_exceed_the_cost_limit() {
        let space = space(3, 100);
        let mut cells = 0;
        let observe = |_: Cell| {
            cells += 1;
            observed(Some(0.5))
        };
        let objective = Objective { max_cost: Some(dollars(0.5)), ..Objective::default() };
        let mut selector = crate::build_selector("auto", &space, &Default::default()).unwrap();
        let outcome =
            replay(&space, selector.as_mut(), observe, objective, SearchBudget::default());
        assert!(outcome.is_err());
        assert_eq!(cells, 18);
    }

    #[test]
    fn score_that_is_not_a_number_is_an_error() {
        let space = space(2, 4);
        let observe = |cell: Cell| Observation {
            score: Some(if cell.combo == 0 { f64::NAN } else { 0.1 }),
            cost: Some(NanoDollars(-1)),
            paid: NanoDollars(i64::MIN),
            latency: -1.0,
        };
        let mut selector = BruteForce::new(&space, 1);
        let budget = SearchBudget::default();
        let outcome = replay(&space, &mut selector, observe, Objective::default(), budget).unwrap();
        assert_eq!((outcome.winner, outcome.spent), (1, Some(NanoDollars(0))));
        assert_eq!(outcome.ranking[1].errors, 4);
    }

    /// Requests one cell, then repeats the same step.
    struct ConstantSelector(SelectorStep, Vec<Elimination>);

    impl Selector for ConstantSelector {
        fn name(&self) -> &'static str {
            "fixed"
        }
        fn next(&mut self, evidence: &Evidence) -> SelectorStep {
            if evidence.cells() == 0 {
                let cells = vec![Cell { combo: 0, datapoint: 0 }];
                return SelectorStep::Evaluate(EvaluationRound { cells, batch: 1 });
            }
            self.0.clone()
        }
        fn eliminations(&self) -> &[Elimination] {
            &self.1
        }
    }

    #[test]
    fn violations_of_the_selector_contract_are_errors() {
        let again = EvaluationRound { cells: vec![Cell { combo: 0, datapoint: 0 }], batch: 1 };
        let choose = |combo| {
            let reason = String::new();
            SelectorStep::Choose(SelectorChoice { combo, confidence: None, reason })
        };
        let gone = Elimination { combo: 0, after_cells: 1, by: None };
        for (step, gone, message) in [
            (SelectorStep::Evaluate(again), vec![], "selector `fixed` requested no new cells"),
            (choose(1), vec![], "selector `fixed` chose combination 1, which has no observations"),
            (
                choose(0),
                vec![gone],
                "selector `fixed` chose combination 0, which it had eliminated",
            ),
            (
                SelectorStep::NoWinner("no data".to_owned()),
                vec![],
                "no combination can be chosen: no data",
            ),
        ] {
            let (space, mut selector) = (space(2, 1), ConstantSelector(step, gone));
            let observe = |_| observed(Some(1.0));
            let error = replay(
                &space,
                &mut selector,
                observe,
                Objective::default(),
                SearchBudget::default(),
            );
            assert_eq!(error.unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn negative_weights_are_rejected() {
        let space = space(2, 1);
        let objective = Objective { cost_weight: -1.0, ..Objective::default() };
        let mut selector = BruteForce::new(&space, 1);
        let observe = |_| observed(None);
        let error = replay(&space, &mut selector, observe, objective, SearchBudget::default());
        assert_eq!(error.unwrap_err(), SelectError::Weight(-1.0));
    }
}
