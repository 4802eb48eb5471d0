//! Search over cells that take time, evaluated concurrently.

use crate::budget::{BudgetMeter, SearchBudget};
use crate::concurrency::Concurrency;
use crate::evidence::Observation;
use crate::objective::Objective;
use crate::outcome::SearchOutcome;
use crate::search::{OnRound, SearchAction, SearchState, SelectError, sanitize};
use crate::selector::Selector;
use crate::space::{Cell, Space};
use futures_util::{StreamExt, stream};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Evaluates cells.
#[async_trait::async_trait]
pub trait Evaluate: Send + Sync {
    /// Evaluates a cell. An error is an observation without a score; it is not retried.
    ///
    /// `None` ends the search: the cell was interrupted, or no cell can be evaluated any more.
    async fn evaluate(&self, cell: Cell) -> Option<Observation>;
}

/// Options of [`select_best`].
pub struct SearchOptions<'a> {
    /// Whether cells are evaluated concurrently.
    pub parallel: bool,
    /// Maximum number of concurrent cells.
    pub max_concurrent: usize,
    /// Budget of the search, including `prior`.
    pub budget: SearchBudget,
    /// Quantity to maximise.
    pub objective: Objective,
    /// Observations of an earlier process; their cells are not evaluated again.
    pub prior: Vec<(Cell, Observation)>,
    /// Callback after each round.
    pub on_round: Option<OnRound<'a>>,
    /// Checked before each cell: once it returns true, no further cell starts and running ones finish.
    pub halt: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        SearchOptions {
            parallel: true,
            max_concurrent: 20,
            budget: SearchBudget::default(),
            objective: Objective::default(),
            prior: Vec::new(),
            on_round: None,
            halt: None,
        }
    }
}

/// Finds the best combination.
///
/// Unless the budget cuts a round short, the result depends neither on the number of concurrent
/// cells nor on the order in which they finish.
///
/// # Errors
///
/// No combination can be chosen, or the selector broke its contract.
pub async fn select_best<'a>(
    space: &'a Space,
    selector: &'a mut dyn Selector,
    evaluate: &dyn Evaluate,
    options: SearchOptions<'a>,
) -> Result<SearchOutcome, SelectError> {
    let SearchOptions { parallel, max_concurrent, budget, objective, prior, on_round, halt } =
        options;
    let mut meter = BudgetMeter::new(budget);
    // All prior cells were paid for, whether they are requested again or not.
    prior.iter().for_each(|(_, observation)| meter.resume(observation.paid));
    let mut search = SearchState::new(space, selector, objective, prior, on_round)?;
    let budget = SharedBudget { meter: Mutex::new(meter), start: Instant::now(), halt };
    loop {
        let (cells, batch) = match search.next()? {
            SearchAction::Evaluate { cells, batch } => (cells, batch),
            SearchAction::Finish(outcome) => return Ok(*outcome),
        };
        let slots = match parallel {
            true => Concurrency::split(max_concurrent, batch),
            false => Concurrency::SEQUENTIAL,
        };
        search.add(evaluate_round(cells, slots, evaluate, &budget).await);
        let stopped = budget.lock().stopped();
        if let Some(limit) = stopped {
            return search.stop(limit).map(|outcome| *outcome);
        }
    }
}

/// Budget shared by all running cells.
struct SharedBudget<'a> {
    meter: Mutex<BudgetMeter>,
    start: Instant,
    halt: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl SharedBudget<'_> {
    /// Starts a cell and returns true, or returns false if the search must end.
    fn start(&self) -> bool {
        let mut meter = self.lock();
        if self.halt.is_some_and(|halt| halt()) {
            meter.halt();
        }
        meter.start(self.start.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, BudgetMeter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evaluates the cells of a round; cells that the budget does not cover are missing from the result.
async fn evaluate_round(
    cells: Vec<(Cell, Option<Observation>)>,
    slots: Concurrency,
    evaluate: &dyn Evaluate,
    budget: &SharedBudget<'_>,
) -> Vec<(Cell, Observation)> {
    let mut observed: Vec<(usize, Cell, Observation)> = Vec::with_capacity(cells.len());
    let mut groups: BTreeMap<usize, Vec<(usize, Cell)>> = BTreeMap::new();
    for (position, (cell, prior)) in cells.into_iter().enumerate() {
        match prior {
            Some(observation) => observed.push((position, cell, observation)),
            None => groups.entry(cell.combo).or_default().push((position, cell)),
        }
    }
    let evaluate_group = |cells: Vec<(usize, Cell)>| async move {
        let cells = stream::iter(cells)
            .map(|(position, cell)| evaluate_cell(position, cell, evaluate, budget));
        cells.buffer_unordered(slots.datapoints).collect::<Vec<_>>().await
    };
    let mut groups =
        stream::iter(groups.into_values()).map(evaluate_group).buffer_unordered(slots.combos);
    while let Some(group) = groups.next().await {
        observed.extend(group.into_iter().flatten());
    }
    observed.sort_unstable_by_key(|(position, ..)| *position);
    observed.into_iter().map(|(_, cell, observation)| (cell, observation)).collect()
}

async fn evaluate_cell(
    position: usize,
    cell: Cell,
    evaluate: &dyn Evaluate,
    budget: &SharedBudget<'_>,
) -> Option<(usize, Cell, Observation)> {
    if !budget.start() {
        return None;
    }
    let Some(observation) = evaluate.evaluate(cell).await.map(sanitize) else {
        budget.lock().halt();
        return None;
    };
    budget.lock().pay(observation.paid);
    Some((position, cell, observation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OutOfOrder, dollars, space};
    use crate::{BruteForce, MatrixUcb, MatrixUcbConfig, SearchLimit, SearchProgress};
    use bakeoff_core::NanoDollars;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    #[tokio::test]
    async fn concurrency_stays_within_the_limit() {
        let space = space(6, 5);
        for (parallel, max_concurrent, expected) in
            [(true, 20, 20), (true, 7, 5), (true, 3, 3), (true, 0, 1), (false, 20, 1)]
        {
            let cells = OutOfOrder::new(|cell: Cell| Some(f64::from(cell.combo == 2)));
            let mut selector = BruteForce::new(&space, 1);
            let options = SearchOptions { parallel, max_concurrent, ..SearchOptions::default() };
            let outcome = select_best(&space, &mut selector, &cells, options).await.unwrap();
            assert_eq!((outcome.winner, outcome.cells), (2, 30));
            assert_eq!(cells.max_running.load(Ordering::Relaxed), expected, "of {max_concurrent}");
        }
    }

    #[tokio::test]
    async fn budget_is_exceeded_by_at_most_the_running_cells() {
        let space = space(6, 5);
        let run = async |parallel, budget| {
            let cells = OutOfOrder::new(|cell: Cell| Some(cell.combo as f64 / 10.0));
            let mut selector = BruteForce::new(&space, 1);
            let options =
                SearchOptions { parallel, max_concurrent: 4, budget, ..SearchOptions::default() };
            select_best(&space, &mut selector, &cells, options).await
        };
        let cost = SearchBudget { cost: Some(dollars(7.0)), ..SearchBudget::default() };
        let sequential = run(false, cost).await.unwrap();
        assert_eq!((sequential.spent, sequential.stopped), (dollars(7.0), Some(SearchLimit::Cost)));
        let parallel = run(true, cost).await.unwrap();
        // The first four start before any cost is known; from then on running cells are counted.
        assert_eq!(parallel.spent, dollars(7.0));
        let cells = SearchBudget { cells: Some(7), ..SearchBudget::default() };
        let parallel = run(true, cells).await.unwrap();
        assert_eq!((parallel.cells, parallel.stopped), (7, Some(SearchLimit::Cells)));
        let none = SearchBudget { time: Some(Duration::ZERO), ..SearchBudget::default() };
        assert!(matches!(run(true, none).await, Err(SelectError::NothingObserved(_))));
    }

    #[tokio::test]
    async fn halted_search_returns_the_best_so_far() {
        let space = space(6, 5);
        let cells = OutOfOrder::new(|cell: Cell| Some(cell.combo as f64 / 10.0));
        let mut selector = BruteForce::new(&space, 1);
        let halt = || cells.observed().len() >= 7;
        let options =
            SearchOptions { parallel: false, halt: Some(&halt), ..SearchOptions::default() };
        let outcome = select_best(&space, &mut selector, &cells, options).await.unwrap();
        assert_eq!((outcome.cells, outcome.stopped), (7, Some(SearchLimit::Halted)));
    }

    #[tokio::test]
    async fn negative_cost_does_not_offset_other_costs() {
        let space = space(6, 5);
        let mut cells = OutOfOrder::new(|_: Cell| Some(0.5));
        cells.cost = |cell| if cell.datapoint == 0 { NanoDollars(i64::MIN) } else { dollars(1.0) };
        let budget = SearchBudget { cost: Some(dollars(8.0)), ..SearchBudget::default() };
        let options = SearchOptions { parallel: false, budget, ..SearchOptions::default() };
        let mut selector = BruteForce::new(&space, 1);
        let outcome = select_best(&space, &mut selector, &cells, options).await.unwrap();
        assert_eq!((outcome.spent, outcome.stopped), (dollars(8.0), Some(SearchLimit::Cost)));
    }

    #[tokio::test]
    async fn resumed_search_does_not_evaluate_prior_cells_again() {
        let space = space(4, 10);
        let score = |cell: Cell| Some([0.2, 0.5, 0.9, 0.4][cell.combo]);
        let selector = || MatrixUcb::new(&space, MatrixUcbConfig::default(), 3).unwrap();
        let cells = OutOfOrder::new(score);
        let whole =
            select_best(&space, &mut selector(), &cells, SearchOptions::default()).await.unwrap();
        let mut prior = cells.observed();
        prior.truncate(7);
        // Prior cells count towards the budget.
        let budget = SearchBudget { cells: Some(7), ..SearchBudget::default() };
        let options = SearchOptions { prior: prior.clone(), budget, ..SearchOptions::default() };
        let cells = OutOfOrder::new(score);
        let stopped = select_best(&space, &mut selector(), &cells, options).await.unwrap();
        assert_eq!((stopped.cells, stopped.stopped), (7, Some(SearchLimit::Cells)));
        assert_eq!(cells.observed().len(), 0);
        let (cells, mut rounds) = (OutOfOrder::new(score), 0);
        let mut count = |progress: SearchProgress<'_>| rounds = progress.rounds;
        let options =
            SearchOptions { prior, on_round: Some(&mut count), ..SearchOptions::default() };
        let resumed = select_best(&space, &mut selector(), &cells, options).await.unwrap();
        assert_eq!(resumed, whole);
        assert_eq!((cells.observed().len(), whole.cells), (12 - 7, 12));
        assert_eq!(rounds, 1 + 8);
    }

    #[tokio::test]
    async fn prior_cost_counts_even_if_its_cells_are_not_requested() {
        let space = space(4, 10);
        let score = |cell: Cell| Some([0.2, 0.5, 0.9, 0.4][cell.combo]);
        let observation = crate::testing::observed(Some(0.2));
        let prior: Vec<_> =
            (0..10).map(|datapoint| (Cell { combo: 0, datapoint }, observation.clone())).collect();
        let find = async |cost: f64| {
            let mut selector = MatrixUcb::new(&space, MatrixUcbConfig::default(), 3).unwrap();
            let budget = SearchBudget { cost: Some(dollars(cost)), ..SearchBudget::default() };
            let options =
                SearchOptions { prior: prior.clone(), budget, ..SearchOptions::default() };
            select_best(&space, &mut selector, &OutOfOrder::new(score), options).await
        };
        let outcome = find(100.0).await.unwrap();
        assert_eq!(outcome.cells, 12);
        assert!(
            outcome.spent > dollars(12.0) && outcome.spent < dollars(22.0),
            "{}",
            outcome.spent
        );
        let stopped = find(12.0).await.unwrap();
        assert_eq!((stopped.spent, stopped.stopped), (dollars(12.0), Some(SearchLimit::Cost)));
    }

    #[tokio::test]
    async fn search_can_run_as_a_spawned_task() {
        let task = tokio::spawn(async {
            let space = space(2, 2);
            let cells = OutOfOrder::new(|_: Cell| Some(1.0));
            let mut selector = BruteForce::new(&space, 1);
            select_best(&space, &mut selector, &cells, SearchOptions::default()).await
        });
        assert!(task.await.unwrap().is_ok());
    }
}
