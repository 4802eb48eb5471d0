//! Execution of the rounds of a search.

use super::cells::{CellEvaluator, CellEvent, PriorCells};
use super::search_run::SearchRun;
use crate::Error;
use crate::active_run::ActiveRun;
use crate::stopper::Stopper;
use crate::target_feeder::{TargetFeeder, available_cores};
use bakeoff_core::{ErrorKind, Event, NanoDollars};
use bakeoff_pace::{FillRule, Pool};
use bakeoff_select::{
    CellFeeder, OnRound, SearchBudget, SearchOptions, SearchOutcome, SelectError, Selector,
    select_best,
};
use bakeoff_suite::{AgentSettings, Suite};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Maximum number of concurrent cells if nothing else limits them.
const DEFAULT_CONCURRENT: usize = 20;

/// Executes all rounds. The first result is the first error while results were recorded, the second that
/// of the search.
pub(super) async fn run_rounds(
    search: &SearchRun,
    selector: &mut dyn Selector,
    prior: PriorCells,
    active: &mut ActiveRun<'_>,
    stopper: &Stopper,
    on_round: OnRound<'_>,
) -> Result<(Result<(), Error>, Result<SearchOutcome, SelectError>), Error> {
    let suite = &search.run.suite;
    let (events, mut cell_events) = mpsc::unbounded_channel();
    let evaluator = CellEvaluator {
        context: Arc::clone(&active.context),
        reader: suite.cases.reader(&suite.survey).map_err(Error::Cases)?,
        cases: Arc::clone(&search.run.cases),
        events,
        unobserved: Mutex::default(),
        measure: suite.select.as_ref().map(|plan| plan.objective.measure).unwrap_or_default(),
    };
    let must_stop = AtomicBool::new(false);
    let halt = || must_stop.load(Ordering::Relaxed) || stopper.is_stopped();
    let remaining =
        (search.budget.cost).map(|cost| NanoDollars(cost.0.saturating_sub(prior.lost.0).max(0)));
    let TargetFeeder { feeder, pools } =
        TargetFeeder::new(suite, &active.context.client, FillRule::RESERVE);
    let pool_loads = || pools.iter().map(Pool::load).collect();
    let mut options = SearchOptions::default();
    options.max_concurrent = max_concurrent(suite, &pools);
    options.feeder = Some(CellFeeder::new(feeder, &pool_loads));
    options.budget = SearchBudget { cost: remaining, ..search.budget };
    options.objective = search.options.objective;
    options.prior = prior.observed;
    options.on_round = Some(on_round);
    options.halt = Some(&halt);
    let selection = select_best(&search.space, selector, &evaluator, options);
    tokio::pin!(selection);
    let mut pool_timer = active.pool_timer();
    let mut problem = Ok(());
    let found = loop {
        tokio::select! {
            found = &mut selection => break found,
            Some(event) = cell_events.recv() => {
                problem = problem.and(record_cell(event, active, &must_stop));
                must_stop.fetch_or(problem.is_err(), Ordering::Relaxed);
            }
            Some(event) = active.trial_events.recv() => {
                problem = problem.and(active.recorder.record_trial_event(&event));
            }
            _ = pool_timer.tick() => active.on_pool_timer(),
        }
    };
    // Events that were sent after the selection ended.
    while let Ok(event) = cell_events.try_recv() {
        problem = problem.and(record_cell(event, active, &must_stop));
    }
    let unobserved = *evaluator.unobserved.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.map(|mut found| {
        found.add_cost(prior.lost.saturating_add(unobserved));
        found
    });
    Ok((problem, found))
}

/// Records the event of a cell.
fn record_cell(
    event: CellEvent,
    active: &mut ActiveRun<'_>,
    must_stop: &AtomicBool,
) -> Result<(), Error> {
    match event {
        CellEvent::Started(key) => active.recorder.emit(&Event::TrialStarted { key }),
        CellEvent::Unreadable(problem) => return Err(Error::Cases(problem)),
        CellEvent::Finished(outcome, recorded) => {
            let error = outcome.result.attempt.error.as_ref();
            if let Some(error) = error.filter(|error| error.kind == ErrorKind::Quota)
                && !must_stop.swap(true, Ordering::Relaxed)
            {
                let message = format!("search stopped, quota exhausted: {}", error.message);
                let code = "EVAL_QUOTA_USED_UP".to_owned();
                active.recorder.emit(&Event::Warning { code, message });
            }
            active.recorder.record_trials(vec![*outcome])?;
            // The evaluator may have been dropped.
            let _ = recorded.send(());
        }
    }
    Ok(())
}

/// Returns the maximum number of concurrent cells, which the pools limit further.
fn max_concurrent(suite: &Suite, pools: &[Pool]) -> usize {
    // A search has many combinations, so a limit for each would not bound the programs.
    let starts_programs = suite.targets.iter().any(|target| {
        target.is_program() || target.agent().is_some_and(AgentSettings::starts_programs)
    });
    match suite.settings.parallel {
        Some(parallel) => parallel as usize,
        None if starts_programs => available_cores(),
        None if pools.iter().all(|pool| pool.limit() == u32::MAX) => DEFAULT_CONCURRENT,
        None => usize::MAX,
    }
}
