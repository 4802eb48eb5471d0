//! Cells are trials: a combination is a target, a datapoint a case.

use crate::Error;
use crate::choice::Chosen;
use crate::dispatch::broke;
use crate::run::Run;
use crate::trial::{Made, Trials};
use bakeoff_core::{ErrorKind, Event, NanoDollars, Status, TrialKey, TrialResult};
use bakeoff_select::{Cell, Evaluate, Observation};
use bakeoff_suite::CaseReader;
use bakeoff_suite::Problem;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// What a cell wants the run to know.
pub(super) enum Told {
    /// It begins.
    Started(TrialKey),
    /// It has ended; whoever asked for it is told once that is written.
    Ended(Box<Made>, oneshot::Sender<()>),
    /// Its case cannot be read any more.
    Unreadable(Problem),
}

/// Makes trials for a search.
pub(super) struct Cells {
    pub(super) trials: Arc<Trials>,
    pub(super) cases: CaseReader,
    pub(super) chosen: Arc<Chosen>,
    pub(super) told: mpsc::UnboundedSender<Told>,
}

impl Cells {
    /// The case and the trial of a datapoint: all cases come before the second trial of any.
    fn turn(&self, datapoint: usize) -> (usize, u32) {
        let cases = self.chosen.ids.len().max(1);
        (datapoint % cases, (datapoint / cases) as u32)
    }
}

#[async_trait::async_trait]
impl Evaluate for Cells {
    async fn evaluate(&self, cell: Cell) -> Option<Observation> {
        let (case, trial) = self.turn(cell.datapoint);
        let case = match self.cases.case(self.chosen.number(case)) {
            Ok(case) => case,
            Err(problem) => {
                let _ = self.told.send(Told::Unreadable(problem));
                return None;
            }
        };
        let target = self.trials.suite.targets[cell.combo].name.clone();
        let key = TrialKey { target, case: case.id.clone(), trial: trial + 1 };
        let _ = self.told.send(Told::Started(key.clone()));
        let task = tokio::spawn(Arc::clone(&self.trials).make(cell.combo, case, trial + 1));
        let made = task.await.unwrap_or_else(|broken| broke(key, &broken));
        // An account that is used up will answer nothing else, and an interrupt says nothing.
        let kind = made.result.attempt.error.as_ref().map(|error| error.kind);
        let says_nothing = matches!(kind, Some(ErrorKind::Quota | ErrorKind::Cancelled));
        let seen = (!says_nothing).then(|| observe(&made.result));
        let (written, is_written) = oneshot::channel();
        if self.told.send(Told::Ended(Box::new(made), written)).is_ok() {
            // Nothing counts that could be lost.
            let _ = is_written.await;
        }
        seen
    }
}

/// What a search sees of a trial.
fn observe(result: &TrialResult) -> Observation {
    let dollars = |cost: Option<NanoDollars>| cost.unwrap_or_default().as_dollars();
    let attempt = &result.attempt;
    let cost = dollars(attempt.cost);
    let score = match result.status {
        Status::Passed => Some(result.score.unwrap_or(1.0)),
        Status::Failed => Some(result.score.unwrap_or(0.0)),
        Status::Error | Status::Skipped => None,
    };
    Observation {
        score,
        cost,
        // A judge belongs to the search, not to what is judged.
        paid: cost - attempt.saved.as_dollars() + dollars(attempt.judge_cost),
        latency: attempt.timing.latency_ms as f64 / 1e3,
    }
}

/// What an earlier process has paid for.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What it saw. What errored is tried again.
    pub(super) seen: Vec<(Cell, Observation)>,
    /// Dollars that errors took.
    pub(super) lost: f64,
}

/// What an earlier process has paid for, by its journal.
pub(super) fn known(run: &Run, journal: &Path) -> Result<Known, Error> {
    let targets = run.suite.targets.iter().map(|target| target.name.as_str());
    let combos: HashMap<&str, usize> = targets.zip(0..).collect();
    let cases: HashMap<&str, usize> =
        run.chosen.ids.iter().enumerate().map(|(number, id)| (id, number)).collect();
    let (mut seen, mut lost) = (HashMap::<Cell, Observation>::new(), 0.0);
    for event in bakeoff_journal::read::<Event>(journal)? {
        let Event::TrialFinished { result } = event? else { continue };
        let place = combos.get(result.key.target.as_str()).zip(cases.get(result.key.case.as_str()));
        let Some((&combo, &case)) = place else { continue };
        if !(1..=run.measure.trials).contains(&result.key.trial) {
            continue;
        }
        let datapoint = (result.key.trial - 1) as usize * cases.len() + case;
        let cell = Cell { combo, datapoint };
        let observed = observe(&result);
        match result.status {
            Status::Passed | Status::Failed => {
                seen.insert(cell, observed);
            }
            Status::Error | Status::Skipped => lost += observed.paid,
        }
    }
    let mut seen: Vec<(Cell, Observation)> = seen.into_iter().collect();
    seen.sort_unstable_by_key(|(cell, _)| *cell);
    Ok(Known { seen, lost })
}
