//! Evaluation of cells as trials: a combination is a target, a datapoint is a trial of a case.

use crate::Error;
use crate::case_selection::CaseSelection;
use crate::context::TrialContext;
use crate::dispatch::{is_denied_before_its_first_call, panic_outcome};
use crate::run::Run;
use crate::trial::{TrialOutcome, execute_trial};
use bakeoff_core::{ErrorKind, Event, NanoDollars, Status, TrialKey, TrialResult};
use bakeoff_select::{Cell, Evaluate, Observation, SearchLimit};
use bakeoff_suite::{CaseReader, Problem, SelectMeasure};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// An event of a cell.
pub(super) enum CellEvent {
    /// Its trial has started.
    Started(TrialKey),
    /// Its trial has finished; the sender confirms that the outcome is recorded.
    Finished(Box<TrialOutcome>, oneshot::Sender<()>),
    /// Its case cannot be read any more.
    Unreadable(Problem),
}

/// Executes the trials of a search.
pub(super) struct CellEvaluator {
    pub(super) context: Arc<TrialContext>,
    pub(super) reader: CaseReader,
    pub(super) cases: Arc<CaseSelection>,
    pub(super) events: mpsc::UnboundedSender<CellEvent>,
    /// Cost of cells without an observation.
    pub(super) unobserved: Mutex<NanoDollars>,
    pub(super) measure: SelectMeasure,
}

impl CellEvaluator {
    /// Returns the case and the trial of a datapoint: the first trials of all cases precede the second
    /// trial of any.
    fn case_and_trial(&self, datapoint: usize) -> (usize, u32) {
        let cases = self.cases.ids.len().max(1);
        (datapoint % cases, (datapoint / cases) as u32)
    }
}

#[async_trait::async_trait]
impl Evaluate for CellEvaluator {
    async fn evaluate(&self, cell: Cell) -> Result<Observation, SearchLimit> {
        let (case, trial) = self.case_and_trial(cell.datapoint);
        let case = match self.reader.case(self.cases.suite_index(case)) {
            Ok(case) => case,
            Err(problem) => {
                let _ = self.events.send(CellEvent::Unreadable(problem));
                return Err(SearchLimit::Halted);
            }
        };
        let target = self.context.suite.targets[cell.combo].name.clone();
        let key = TrialKey { target, case: case.id.clone(), trial: trial + 1 };
        let _ = self.events.send(CellEvent::Started(key.clone()));
        let trial = execute_trial(Arc::clone(&self.context), cell.combo, case, trial + 1);
        let outcome = tokio::spawn(trial).await.unwrap_or_else(|error| panic_outcome(key, &error));
        if is_denied_before_its_first_call(&outcome.result) {
            return Err(SearchLimit::Cost);
        }
        let observation = match outcome.result.attempt.error.as_ref().map(|error| error.kind) {
            // An exhausted quota or budget and an interrupt are no observations of the combination.
            Some(ErrorKind::Budget) => Err(SearchLimit::Cost),
            Some(ErrorKind::Quota | ErrorKind::Cancelled) => Err(SearchLimit::Halted),
            _ => Ok(observe(&outcome.result, self.measure)),
        };
        if observation.is_err() {
            let paid = observe(&outcome.result, self.measure).paid;
            *self.unobserved.lock().unwrap_or_else(PoisonError::into_inner) += paid;
        }
        let (recorded, is_recorded) = oneshot::channel();
        if self.events.send(CellEvent::Finished(Box::new(outcome), recorded)).is_ok() {
            // Only recorded results count.
            let _ = is_recorded.await;
        }
        observation
    }
}

/// Converts a result to an observation.
fn observe(result: &TrialResult, measure: SelectMeasure) -> Observation {
    let attempt = &result.attempt;
    let graded = result.score.filter(|_| measure == SelectMeasure::Score);
    let score = match result.status {
        Status::Passed => Some(graded.unwrap_or(1.0)),
        Status::Failed => Some(graded.unwrap_or(0.0)),
        Status::Error | Status::Skipped => None,
    };
    Observation {
        score,
        cost: attempt.cost,
        // The cost of judges belongs to the search, not to the combination.
        paid: NanoDollars(attempt.cost.unwrap_or_default().0.saturating_sub(attempt.saved.0))
            .saturating_add(attempt.judge_cost.unwrap_or_default()),
        latency: attempt.timing.latency_ms as f64 / 1e3,
    }
}

/// Cells that an earlier process has paid for.
#[derive(Debug, Default)]
pub(super) struct PriorCells {
    /// Observations. Trials with errors are repeated.
    pub(super) observed: Vec<(Cell, Observation)>,
    /// Cost of trials without an observation.
    pub(super) lost: NanoDollars,
}

/// Reads the cells of an earlier process from the journal.
pub(super) fn read_prior_cells(run: &Run, journal: &Path) -> Result<PriorCells, Error> {
    let select = run.suite.select.as_ref();
    let measure = select.map(|plan| plan.objective.measure).unwrap_or_default();
    let targets = run.suite.targets.iter().map(|target| target.name.as_str());
    let combos: HashMap<&str, usize> = targets.zip(0..).collect();
    let cases: HashMap<&str, usize> =
        run.cases.ids.iter().enumerate().map(|(index, id)| (id, index)).collect();
    let (mut observed, mut lost) = (HashMap::<Cell, Observation>::new(), NanoDollars::default());
    for event in bakeoff_journal::read::<Event>(journal)? {
        let event = match event {
            // The trials of damaged lines run again.
            Err(bakeoff_journal::Error::Damaged { .. }) => continue,
            event => event?,
        };
        let Event::TrialFinished { result } = event else { continue };
        let combo = combos.get(result.key.target.as_str());
        let case = cases.get(result.key.case.as_str());
        let Some((&combo, &case)) = combo.zip(case) else { continue };
        if !(1..=run.criteria.plan.default().trials).contains(&result.key.trial) {
            continue;
        }
        let datapoint = (result.key.trial - 1) as usize * cases.len() + case;
        let cell = Cell { combo, datapoint };
        let observation = observe(&result, measure);
        match result.status {
            Status::Passed | Status::Failed => {
                observed.insert(cell, observation);
            }
            Status::Error | Status::Skipped => lost += observation.paid,
        }
    }
    let mut observed: Vec<(Cell, Observation)> = observed.into_iter().collect();
    observed.sort_unstable_by_key(|(cell, _)| *cell);
    Ok(PriorCells { observed, lost })
}
