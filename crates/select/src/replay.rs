//! A search over what is known already, one cell after the other.

use crate::budget::{Budget, Meter};
use crate::evidence::Observation;
use crate::objective::Objective;
use crate::search::{Search, SelectError, Wanted, sound};
use crate::selection::Selection;
use crate::selector::Selector;
use crate::space::{Cell, Space};
use std::time::Duration;

/// Runs a search on recorded or made-up cells, without any waiting.
///
/// # Errors
///
/// Nobody could be chosen, or the selector broke its contract.
pub fn replay(
    space: &Space,
    selector: &mut dyn Selector,
    mut observe: impl FnMut(Cell) -> Observation,
    objective: Objective,
    budget: Budget,
) -> Result<Selection, SelectError> {
    let mut search = Search::new(space, selector, objective, Vec::new(), None)?;
    let (mut meter, mut elapsed) = (Meter::new(budget), Duration::ZERO);
    loop {
        let cells = match search.next()? {
            Wanted::Cells { cells, .. } => cells,
            Wanted::Nothing(selection) => return Ok(*selection),
        };
        let mut seen = Vec::with_capacity(cells.len());
        for (cell, _) in cells {
            if !meter.start(elapsed) {
                break;
            }
            let observation = sound(observe(cell));
            meter.pay(observation.paid);
            elapsed = elapsed.saturating_add(
                Duration::try_from_secs_f64(observation.latency).unwrap_or_default(),
            );
            seen.push((cell, observation));
        }
        search.add(seen);
        if let Some(limit) = meter.stopped() {
            return search.stop(limit).map(|selection| *selection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::{Choice, Elimination, Round, Step};
    use crate::testing::{seen, space};
    use crate::{BruteForce, Evidence, Limit};

    fn brute(budget: Budget) -> Result<Selection, SelectError> {
        let space = space(3, 10);
        let observe = |cell: Cell| seen(Some([0.4, 0.8, 0.6][cell.combo]));
        replay(&space, &mut BruteForce::new(&space, 1), observe, Objective::default(), budget)
    }

    #[test]
    fn the_best_wins() {
        let selection = brute(Budget::default()).unwrap();
        assert_eq!((selection.winner, selection.cells, selection.stopped), (1, 30, None));
    }

    #[test]
    fn budgets_end_it_with_the_best_so_far() {
        let time = Some(Duration::from_secs(5));
        for (budget, limit, cells, winner) in [
            (Budget { cost: Some(15.0), ..Budget::default() }, Limit::Cost, 15, 1),
            (Budget { cells: Some(10), ..Budget::default() }, Limit::Cells, 10, 0),
            (Budget { time, ..Budget::default() }, Limit::Time, 5, 0),
        ] {
            let selection = brute(budget).unwrap();
            assert_eq!((selection.stopped, selection.cells), (Some(limit), cells));
            assert_eq!((selection.winner, selection.confidence), (winner, None));
        }
        // A budget that is just enough ends nothing.
        let selection = brute(Budget { cells: Some(30), ..Budget::default() }).unwrap();
        assert_eq!(selection.stopped, None);
        let error = brute(Budget { cells: Some(0), ..Budget::default() }).unwrap_err();
        assert!(matches!(error, SelectError::NothingObserved(_)));
    }

    #[test]
    fn who_can_say_how_sure_it_is_says_so_when_it_is_stopped() {
        let space = space(3, 40);
        let observe = |cell: Cell| seen(Some(f64::from(cell.datapoint % 3 <= cell.combo)));
        let stopped = |name: &str, cells: usize| {
            let mut selector = crate::named(name, &space, &Default::default()).unwrap();
            let budget = Budget { cells: Some(cells), ..Budget::default() };
            replay(&space, selector.as_mut(), observe, Objective::default(), budget).unwrap()
        };
        let found = stopped("auto", 22);
        assert_eq!((found.winner, found.stopped), (2, Some(Limit::Cells)));
        assert!(found.confidence.is_some_and(|sure| sure > 0.0 && sure < 0.95), "{found:?}");
        assert_eq!(stopped("arm_elimination", 22).confidence, None);
    }

    #[test]
    fn the_best_of_those_that_are_not_too_dear() {
        let space = space(3, 10);
        let observe = |cell: Cell| Observation {
            cost: 1.0 + cell.combo as f64,
            ..seen(Some(0.1 * cell.combo as f64))
        };
        let under = |dollars: f64, name: &str| {
            let objective = Objective { max_cost: Some(dollars), ..Objective::default() };
            let mut selector = crate::named(name, &space, &Default::default()).unwrap();
            replay(&space, selector.as_mut(), observe, objective, Budget::default())
        };
        for name in ["auto", "strict", "brute_force", "arm_elimination", "matrix_ucb"] {
            assert_eq!(under(2.5, name).unwrap().winner, 1, "{name}");
        }
        let dear = "costs as little as asked for; the cheapest is r0=m0 with $1.000000 each";
        let error = under(0.5, "auto").unwrap_err().to_string();
        assert_eq!(error, format!("no combination {dear}"));
        // Whoever tries few says so.
        let error = under(0.5, "random_search").unwrap_err().to_string();
        assert!(error.starts_with("no combination that was tried costs"), "{error}");
    }

    #[test]
    fn nobody_is_looked_for_where_all_are_too_dear() {
        let space = space(3, 100);
        let mut cells = 0;
        let observe = |_: Cell| {
            cells += 1;
            seen(Some(0.5))
        };
        let objective = Objective { max_cost: Some(0.5), ..Objective::default() };
        let mut selector = crate::named("auto", &space, &Default::default()).unwrap();
        assert!(replay(&space, selector.as_mut(), observe, objective, Budget::default()).is_err());
        assert_eq!(cells, 18);
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        let space = space(2, 4);
        let observe = |cell: Cell| Observation {
            score: Some(if cell.combo == 0 { f64::NAN } else { 0.1 }),
            cost: f64::INFINITY,
            paid: f64::NAN,
            latency: -1.0,
        };
        let mut selector = BruteForce::new(&space, 1);
        let selection =
            replay(&space, &mut selector, observe, Objective::default(), Budget::default())
                .unwrap();
        assert_eq!((selection.winner, selection.spent), (1, 0.0));
        assert_eq!(selection.ranking[1].errors, 4);
    }

    /// Says the same again and again.
    struct Fixed(Step, Vec<Elimination>);

    impl Selector for Fixed {
        fn name(&self) -> &'static str {
            "fixed"
        }
        fn next(&mut self, evidence: &Evidence) -> Step {
            if evidence.cells() == 0 {
                let cells = vec![Cell { combo: 0, datapoint: 0 }];
                return Step::Evaluate(Round { cells, batch: 1 });
            }
            self.0.clone()
        }
        fn eliminations(&self) -> &[Elimination] {
            &self.1
        }
    }

    #[test]
    fn selectors_are_held_to_their_contract() {
        let again = Round { cells: vec![Cell { combo: 0, datapoint: 0 }], batch: 1 };
        let choose =
            |combo| Step::Choose(Choice { combo, confidence: None, reason: String::new() });
        let gone = Elimination { combo: 0, after_cells: 1, by: None };
        for (step, gone, message) in [
            (Step::Evaluate(again), vec![], "the selector `fixed` asks for nothing new"),
            (
                choose(1),
                vec![],
                "the selector `fixed` chose combination 1, of which nothing was observed",
            ),
            (
                choose(0),
                vec![gone],
                "the selector `fixed` chose combination 0, which it had given up",
            ),
            (Step::GiveUp("it rains".to_owned()), vec![], "no combination can be chosen: it rains"),
        ] {
            let (space, mut fixed) = (space(2, 1), Fixed(step, gone));
            let observe = |_| seen(Some(1.0));
            let error =
                replay(&space, &mut fixed, observe, Objective::default(), Budget::default());
            assert_eq!(error.unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn weights_are_not_negative() {
        let space = space(2, 1);
        let objective = Objective { cost_weight: -1.0, ..Objective::default() };
        let mut selector = BruteForce::new(&space, 1);
        let error = replay(&space, &mut selector, |_| seen(None), objective, Budget::default())
            .unwrap_err();
        assert_eq!(error, SelectError::Weight(-1.0));
    }
}
