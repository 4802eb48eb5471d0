//! A search over cells that take time: as many at once as is allowed.

use crate::budget::{Budget, Meter};
use crate::concurrency::Concurrency;
use crate::evidence::Observation;
use crate::objective::Objective;
use crate::search::{OnRound, Search, SelectError, Wanted, sound};
use crate::selection::Selection;
use crate::selector::Selector;
use crate::space::{Cell, Space};
use futures_util::{StreamExt, stream};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Pays for cells.
#[async_trait::async_trait]
pub trait Evaluate: Send + Sync {
    /// What a cell gives. An error is an observation without a score; it is not asked for again.
    /// `None` ends the search: the cell was interrupted, or nothing can be evaluated any more.
    async fn evaluate(&self, cell: Cell) -> Option<Observation>;
}

/// How a search is run.
pub struct Options<'a> {
    /// Whether cells are evaluated at once.
    pub parallel: bool,
    /// Cells that are evaluated at once, at most.
    pub max_concurrent: usize,
    /// What the search may take, with what was observed before.
    pub budget: Budget,
    /// What is to be made large.
    pub objective: Objective,
    /// What was observed before: it is not paid for again.
    pub prior: Vec<(Cell, Observation)>,
    /// Who is told after each round.
    pub on_round: Option<OnRound<'a>>,
    /// Whether to end now: nothing is started any more, and what runs is finished.
    pub halt: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            parallel: true,
            max_concurrent: 20,
            budget: Budget::default(),
            objective: Objective::default(),
            prior: Vec::new(),
            on_round: None,
            halt: None,
        }
    }
}

/// Finds the best combination.
///
/// What is chosen does not depend on how many cells run at once, nor on which of them ends first, as
/// long as no budget cuts a round short.
///
/// # Errors
///
/// Nobody could be chosen, or the selector broke its contract.
pub async fn select_best<'a>(
    space: &'a Space,
    selector: &'a mut dyn Selector,
    evaluate: &dyn Evaluate,
    options: Options<'a>,
) -> Result<Selection, SelectError> {
    let Options { parallel, max_concurrent, budget, objective, prior, on_round, halt } = options;
    let mut meter = Meter::new(budget);
    // All of it was paid for, whether it is asked for again or not.
    prior.iter().for_each(|(_, known)| meter.resume(known.paid));
    let mut search = Search::new(space, selector, objective, prior, on_round)?;
    let purse = Purse { meter: Mutex::new(meter), begun: Instant::now(), halt };
    loop {
        let (cells, batch) = match search.next()? {
            Wanted::Cells { cells, batch } => (cells, batch),
            Wanted::Nothing(selection) => return Ok(*selection),
        };
        let slots = match parallel {
            true => Concurrency::split(max_concurrent, batch),
            false => Concurrency::SEQUENTIAL,
        };
        search.add(round(cells, slots, evaluate, &purse).await);
        let stopped = purse.lock().stopped();
        if let Some(limit) = stopped {
            return search.stop(limit).map(|selection| *selection);
        }
    }
}

/// What all cells that run pay from.
struct Purse<'a> {
    meter: Mutex<Meter>,
    begun: Instant,
    halt: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Purse<'_> {
    /// Whether one more cell may start.
    fn start(&self) -> bool {
        let mut meter = self.lock();
        if self.halt.is_some_and(|halt| halt()) {
            meter.halt();
        }
        meter.start(self.begun.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evaluates the cells of a round; those that the budget has nothing left for are missing.
async fn round(
    cells: Vec<(Cell, Option<Observation>)>,
    slots: Concurrency,
    evaluate: &dyn Evaluate,
    purse: &Purse<'_>,
) -> Vec<(Cell, Observation)> {
    let mut seen: Vec<(usize, Cell, Observation)> = Vec::with_capacity(cells.len());
    let mut groups: BTreeMap<usize, Vec<(usize, Cell)>> = BTreeMap::new();
    for (place, (cell, known)) in cells.into_iter().enumerate() {
        match known {
            Some(known) => seen.push((place, cell, known)),
            None => groups.entry(cell.combo).or_default().push((place, cell)),
        }
    }
    let group = |cells: Vec<(usize, Cell)>| async move {
        let cells = stream::iter(cells).map(|(place, cell)| one(place, cell, evaluate, purse));
        cells.buffer_unordered(slots.datapoints).collect::<Vec<_>>().await
    };
    let mut groups = stream::iter(groups.into_values()).map(group).buffer_unordered(slots.combos);
    while let Some(done) = groups.next().await {
        seen.extend(done.into_iter().flatten());
    }
    seen.sort_unstable_by_key(|(place, ..)| *place);
    seen.into_iter().map(|(_, cell, observation)| (cell, observation)).collect()
}

async fn one(
    place: usize,
    cell: Cell,
    evaluate: &dyn Evaluate,
    purse: &Purse<'_>,
) -> Option<(usize, Cell, Observation)> {
    if !purse.start() {
        return None;
    }
    let Some(observation) = evaluate.evaluate(cell).await.map(sound) else {
        purse.lock().halt();
        return None;
    };
    purse.lock().pay(observation.paid);
    Some((place, cell, observation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scrambled, space};
    use crate::{BruteForce, Limit, MatrixUcb, MatrixUcbConfig};
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    #[tokio::test]
    async fn no_more_run_at_once_than_allowed() {
        let space = space(6, 5);
        for (parallel, max_concurrent, most) in
            [(true, 20, 20), (true, 7, 5), (true, 3, 3), (true, 0, 1), (false, 20, 1)]
        {
            let world = Scrambled::new(|cell: Cell| Some(f64::from(cell.combo == 2)));
            let mut selector = BruteForce::new(&space, 1);
            let options = Options { parallel, max_concurrent, ..Options::default() };
            let selection = select_best(&space, &mut selector, &world, options).await.unwrap();
            assert_eq!((selection.winner, selection.cells), (2, 30));
            assert_eq!(world.most.load(Ordering::Relaxed), most, "of {max_concurrent}");
        }
    }

    #[tokio::test]
    async fn a_budget_is_exceeded_by_no_more_than_what_runs() {
        let space = space(6, 5);
        let run = async |parallel, budget| {
            let world = Scrambled::new(|cell: Cell| Some(cell.combo as f64 / 10.0));
            let mut selector = BruteForce::new(&space, 1);
            let options = Options { parallel, max_concurrent: 4, budget, ..Options::default() };
            select_best(&space, &mut selector, &world, options).await
        };
        let cost = Budget { cost: Some(7.0), ..Budget::default() };
        let alone = run(false, cost).await.unwrap();
        assert_eq!((alone.spent, alone.stopped), (7.0, Some(Limit::Cost)));
        let many = run(true, cost).await.unwrap();
        // The first four are started before anybody knows what they cost; from then on those that
        // run are counted.
        assert_eq!(many.spent, 7.0);
        let cells = Budget { cells: Some(7), ..Budget::default() };
        let many = run(true, cells).await.unwrap();
        assert_eq!((many.cells, many.stopped), (7, Some(Limit::Cells)));
        let none = Budget { time: Some(Duration::ZERO), ..Budget::default() };
        assert!(matches!(run(true, none).await, Err(SelectError::NothingObserved(_))));
    }

    #[tokio::test]
    async fn whoever_wants_it_to_end_gets_the_best_so_far() {
        let space = space(6, 5);
        let world = Scrambled::new(|cell: Cell| Some(cell.combo as f64 / 10.0));
        let mut selector = BruteForce::new(&space, 1);
        let halt = || world.seen().len() >= 7;
        let options = Options { parallel: false, halt: Some(&halt), ..Options::default() };
        let found = select_best(&space, &mut selector, &world, options).await.unwrap();
        assert_eq!((found.cells, found.stopped), (7, Some(Limit::Halted)));
    }

    #[tokio::test]
    async fn a_price_that_is_no_number_does_not_hide_the_others() {
        let space = space(6, 5);
        let mut world = Scrambled::new(|_: Cell| Some(0.5));
        world.cost = |cell| if cell.datapoint == 0 { f64::NAN } else { 1.0 };
        let budget = Budget { cost: Some(8.0), ..Budget::default() };
        let options = Options { parallel: false, budget, ..Options::default() };
        let mut selector = BruteForce::new(&space, 1);
        let selection = select_best(&space, &mut selector, &world, options).await.unwrap();
        assert_eq!((selection.spent, selection.stopped), (8.0, Some(Limit::Cost)));
    }

    #[tokio::test]
    async fn what_was_observed_before_is_not_paid_for_again() {
        let space = space(4, 10);
        let score = |cell: Cell| Some([0.2, 0.5, 0.9, 0.4][cell.combo]);
        let selector = || MatrixUcb::new(&space, MatrixUcbConfig::default(), 3).unwrap();
        let world = Scrambled::new(score);
        let whole = select_best(&space, &mut selector(), &world, Options::default()).await.unwrap();
        let mut prior = world.seen();
        prior.truncate(7);
        // It counts for the budget all the same.
        let budget = Budget { cells: Some(7), ..Budget::default() };
        let (world, options) =
            (Scrambled::new(score), Options { prior: prior.clone(), budget, ..Options::default() });
        let stopped = select_best(&space, &mut selector(), &world, options).await.unwrap();
        assert_eq!((stopped.cells, stopped.stopped), (7, Some(Limit::Cells)));
        assert_eq!(world.seen().len(), 0);
        let (world, mut rounds) = (Scrambled::new(score), 0);
        let mut count = |progress: crate::Progress<'_>| rounds = progress.rounds;
        let options = Options { prior, on_round: Some(&mut count), ..Options::default() };
        let again = select_best(&space, &mut selector(), &world, options).await.unwrap();
        assert_eq!(again, whole);
        assert_eq!((world.seen().len(), whole.cells), (12 - 7, 12));
        assert_eq!(rounds, 1 + 8);
    }

    #[tokio::test]
    async fn what_was_paid_for_before_counts_whether_it_is_asked_for_or_not() {
        let space = space(4, 10);
        let score = |cell: Cell| Some([0.2, 0.5, 0.9, 0.4][cell.combo]);
        let seen = crate::testing::seen(Some(0.2));
        let prior: Vec<_> =
            (0..10).map(|datapoint| (Cell { combo: 0, datapoint }, seen.clone())).collect();
        let find = async |cost: f64| {
            let mut selector = MatrixUcb::new(&space, MatrixUcbConfig::default(), 3).unwrap();
            let budget = Budget { cost: Some(cost), ..Budget::default() };
            let options = Options { prior: prior.clone(), budget, ..Options::default() };
            select_best(&space, &mut selector, &Scrambled::new(score), options).await
        };
        let found = find(100.0).await.unwrap();
        assert_eq!(found.cells, 12);
        assert!(found.spent > 12.0 && found.spent < 22.0, "{}", found.spent);
        let stopped = find(12.0).await.unwrap();
        assert_eq!((stopped.spent, stopped.stopped), (12.0, Some(Limit::Cost)));
    }

    #[tokio::test]
    async fn a_search_can_be_a_task_of_its_own() {
        let task = tokio::spawn(async {
            let space = space(2, 2);
            let world = Scrambled::new(|_: Cell| Some(1.0));
            let mut selector = BruteForce::new(&space, 1);
            select_best(&space, &mut selector, &world, Options::default()).await
        });
        assert!(task.await.unwrap().is_ok());
    }
}
