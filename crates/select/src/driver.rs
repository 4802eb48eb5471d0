//! Search over cells that take time, evaluated concurrently.

use crate::budget::{BudgetMeter, CellStart, SearchBudget, SearchLimit};
use crate::cell_feeder::{CellFeeder, PendingCells, StartedCell};
use crate::evidence::Observation;
use crate::objective::Objective;
use crate::outcome::SearchOutcome;
use crate::search::{OnRound, SearchAction, SearchState, SelectError, sanitize};
use crate::selector::Selector;
use crate::space::{Cell, Space};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

/// Evaluates cells.
#[async_trait::async_trait]
pub trait Evaluate: Send + Sync {
    /// Evaluates a cell. An error is an observation without a score; it is not retried.
    ///
    /// A limit ends the search: the cell was interrupted, the budget does not cover it, or no cell can be evaluated
    /// any more.
    async fn evaluate(&self, cell: Cell) -> Result<Observation, SearchLimit>;
}

/// Options of [`select_best`].
#[non_exhaustive]
pub struct SearchOptions<'a> {
    /// Whether cells are evaluated concurrently.
    pub parallel: bool,
    /// Maximum number of concurrent cells.
    pub max_concurrent: usize,
    /// Pools that limit the running cells further; needs a runtime with a timer.
    pub feeder: Option<CellFeeder<'a>>,
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
            feeder: None,
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
    let SearchOptions { parallel, max_concurrent, feeder, budget, objective, .. } = options;
    let SearchOptions { prior, on_round, halt, .. } = options;
    let max_concurrent = if parallel { max_concurrent.max(1) } else { 1 };
    let mut feeder = feeder.unwrap_or_else(CellFeeder::without_pools);
    let mut meter = BudgetMeter::new(budget);
    // All prior cells were paid for, whether they are requested again or not.
    prior.iter().for_each(|(_, observation)| meter.resume(observation.paid));
    let mut search = SearchState::new(space, selector, objective, prior, on_round)?;
    let mut budget = CellBudget { meter, start: Instant::now(), halt };
    loop {
        let cells = match search.next()? {
            SearchAction::Evaluate(cells) => cells,
            SearchAction::Finish(outcome) => return Ok(*outcome),
        };
        let round = evaluate_round(cells, max_concurrent, &mut feeder, evaluate, &mut budget).await;
        search.add(round);
        if let Some(limit) = budget.meter.stopped() {
            return search.stop(limit).map(|outcome| *outcome);
        }
    }
}

/// Budget shared by all cells, with the conditions that end a search.
struct CellBudget<'a> {
    meter: BudgetMeter,
    start: Instant,
    halt: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl CellBudget<'_> {
    fn start(&mut self) -> CellStart {
        if self.halt.is_some_and(|halt| halt()) {
            self.meter.stop(SearchLimit::Halted);
        }
        self.meter.start(self.start.elapsed())
    }
}

/// Evaluates the cells of a round; cells that the budget does not cover are missing from the result.
async fn evaluate_round(
    cells: Vec<(Cell, Option<Observation>)>,
    max_concurrent: usize,
    feeder: &mut CellFeeder<'_>,
    evaluate: &dyn Evaluate,
    budget: &mut CellBudget<'_>,
) -> Vec<(Cell, Observation)> {
    let mut observed: Vec<(usize, Cell, Observation)> = Vec::with_capacity(cells.len());
    let mut pending = PendingCells::default();
    for (position, (cell, prior)) in cells.into_iter().enumerate() {
        match prior {
            Some(observation) => observed.push((position, cell, observation)),
            None => pending.push(position, cell),
        }
    }
    let mut running = FuturesUnordered::new();
    loop {
        feeder.refresh();
        while running.len() < max_concurrent
            && let Some(combo) = feeder.next(&pending)
        {
            match budget.start() {
                CellStart::Started => {}
                CellStart::Wait => break,
                CellStart::Stopped => {
                    pending.clear();
                    break;
                }
            }
            if let Some(started) = feeder.start(combo, &mut pending) {
                running.push(async move {
                    let observation = evaluate.evaluate(started.cell).await;
                    (started, observation)
                });
            }
        }
        tokio::select! {
            biased;
            finished = running.next() => {
                let Some((StartedCell { lane, position, cell }, observation)) = finished else {
                    break;
                };
                feeder.finish(lane);
                match observation.map(sanitize) {
                    Ok(observation) => {
                        budget.meter.pay(observation.paid);
                        observed.push((position, cell, observation));
                    }
                    Err(limit) => budget.meter.stop(limit),
                }
            }
            () = feeder.refresh_due(), if !pending.is_empty() => {}
        }
    }
    observed.sort_unstable_by_key(|(position, ..)| *position);
    observed.into_iter().map(|(_, cell, observation)| (cell, observation)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OutOfOrder, dollars, space};
    use crate::{BruteForce, MatrixUcb, MatrixUcbConfig, SearchProgress};
    use bakeoff_core::NanoDollars;
    use bakeoff_pace::{Feeder, FillRule, LaneConfig, PoolLoad};
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    #[tokio::test]
    async fn concurrency_stays_within_the_limit() {
        let space = space(6, 5);
        for (parallel, max_concurrent, expected) in
            [(true, 20, 20), (true, 7, 7), (true, 3, 3), (true, 0, 1), (false, 20, 1)]
        {
            let cells = OutOfOrder::new(|cell: Cell| Some(f64::from(cell.combo == 2)));
            let mut selector = BruteForce::new(&space, 1);
            let options = SearchOptions { parallel, max_concurrent, ..SearchOptions::default() };
            let outcome = select_best(&space, &mut selector, &cells, options).await.unwrap();
            assert_eq!((outcome.winner, outcome.cells), (2, 30));
            assert_eq!(cells.max_running.load(Ordering::Relaxed), expected, "of {max_concurrent}");
        }
    }

    /// Evaluator whose cells take ten seconds.
    struct TenSeconds;

    #[async_trait::async_trait]
    impl Evaluate for TenSeconds {
        async fn evaluate(&self, cell: Cell) -> Result<Observation, SearchLimit> {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(crate::testing::observed(Some(cell.combo as f64)))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn grown_pool_limit_applies_before_a_cell_finishes() {
        let space = space(4, 5);
        let mut feeder = Feeder::new(usize::MAX);
        let pool = feeder.add_pool(FillRule { reserve: 0, ..FillRule::RESERVE });
        for _ in 0..space.combos() {
            feeder.add_lane(LaneConfig::new(vec![pool]));
        }
        let start = Instant::now();
        let pool_loads = || {
            let limit = if start.elapsed() < Duration::from_secs(1) { 2 } else { 20 };
            vec![PoolLoad { limit, ..PoolLoad::default() }]
        };
        let options = SearchOptions {
            feeder: Some(CellFeeder::new(feeder, &pool_loads)),
            ..SearchOptions::default()
        };
        let mut selector = BruteForce::new(&space, 1);
        let outcome = select_best(&space, &mut selector, &TenSeconds, options).await.unwrap();
        assert_eq!((outcome.winner, outcome.cells, start.elapsed().as_secs()), (3, 20, 11));
    }

    #[tokio::test]
    async fn running_cells_count_towards_the_budget() {
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
        assert_eq!(
            (sequential.spent, sequential.stopped),
            (Some(dollars(7.0)), Some(SearchLimit::Cost))
        );
        let parallel = run(true, cost).await.unwrap();
        // The first one runs alone; from then on running cells are counted.
        assert_eq!(parallel.spent, Some(dollars(7.0)));
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
        assert_eq!((outcome.spent, outcome.stopped), (Some(dollars(8.0)), Some(SearchLimit::Cost)));
    }

    #[tokio::test]
    async fn one_expensive_cell_does_not_end_a_concurrent_search() {
        let space = space(6, 50);
        let mut cells = OutOfOrder::new(|_: Cell| Some(0.5));
        // With 20 running cells, each counted at $10, the budget would seem to be exhausted after $100.
        cells.cost = |cell| dollars(if cell.combo + cell.datapoint == 0 { 10.0 } else { 1.0 });
        let budget = SearchBudget { cost: Some(dollars(200.0)), ..SearchBudget::default() };
        let options = SearchOptions { budget, ..SearchOptions::default() };
        let mut selector = BruteForce::new(&space, 1);
        let outcome = select_best(&space, &mut selector, &cells, options).await.unwrap();
        assert_eq!(outcome.stopped, Some(SearchLimit::Cost));
        let spent = outcome.spent.unwrap();
        assert!(spent > dollars(189.0) && spent <= dollars(200.0), "{spent:?}");
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
        // One cell of each combination, then three at a time.
        assert_eq!(rounds, 1 + 3);
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
            outcome.spent > Some(dollars(12.0)) && outcome.spent < Some(dollars(22.0)),
            "{:?}",
            outcome.spent
        );
        let stopped = find(12.0).await.unwrap();
        assert_eq!(
            (stopped.spent, stopped.stopped),
            (Some(dollars(12.0)), Some(SearchLimit::Cost))
        );
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
