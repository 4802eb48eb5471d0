//! A run that makes only the trials that a search asks for.
//!
//! Each combination is a target of its own, so that what is journaled, reported and gone on with is
//! what it is in any run.

mod cells;
mod file;

pub use file::SelectionFile;

use crate::Error;
use crate::folder::RunFolder;
use crate::run::{Run, Stopper};
use crate::suite::Suite;
use crate::underway::Underway;
use bakeoff_core::{ErrorKind, Event, ExitCode, Status};
use bakeoff_select::{
    Budget, Limit, Objective, OnRound, Options, SelectError, Selection, Selector, Space,
    select_best,
};
use cells::{Cells, Known, Told};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

/// Cells of models at once, when nobody says: pools let through what providers allow.
const MOST_AT_ONCE: usize = 200;

/// How a search is made.
pub struct SearchConfig<'a> {
    /// The combinations, in the order of the suite's targets, and the datapoints: the cases, as often
    /// as there are trials.
    pub space: Space,
    /// Who says what to try.
    pub selector: Box<dyn Selector>,
    /// What is to be made large.
    pub objective: Objective,
    /// What it may take, with what an earlier process took.
    pub budget: Budget,
    /// Who is told after each round.
    pub on_round: OnRound<'a>,
}

/// A search that is over.
#[derive(Debug)]
pub struct Searched {
    /// The run's folder.
    pub folder: RunFolder,
    /// What was found; an error when nobody could be chosen.
    pub selection: Result<Selection, SelectError>,
    /// What the shell is told.
    pub exit_code: ExitCode,
}

impl Run {
    /// Datapoints of a search.
    pub fn datapoints(&self) -> usize {
        self.chosen.ids.len() * self.measure.trials as usize
    }

    /// Makes the trials that a search asks for, until it has seen enough or may take no more.
    ///
    /// # Errors
    ///
    /// When results cannot be written; what had been written stays.
    pub async fn search(
        self,
        config: SearchConfig<'_>,
        stopper: &Stopper,
        listen: &mut (dyn FnMut(&Event) + Send),
    ) -> Result<Searched, Error> {
        let SearchConfig { space, mut selector, objective, budget, on_round } = config;
        let (mut underway, judged) = self.begin(stopper, listen)?;
        let targets: Vec<&str> =
            self.suite.targets.iter().map(|target| target.name.as_str()).collect();
        let Known { seen, lost } = match judged.is_empty() {
            true => Known::default(),
            false => {
                let trials = self.measure.trials;
                cells::known(&underway.folder.journal(), &targets, &self.chosen, trials)?
            }
        };
        let (told, mut heard) = mpsc::unbounded_channel();
        let evaluate = Cells {
            trials: Arc::clone(&underway.trials),
            cases: self.suite.cases.reader(&self.suite.survey).map_err(Error::Cases)?,
            chosen: Arc::clone(&self.chosen),
            told,
        };
        let broken = AtomicBool::new(false);
        let halt = || broken.load(Ordering::Relaxed) || stopper.is_stopped();
        let options = Options {
            max_concurrent: at_once(&self.suite),
            budget: Budget { cost: budget.cost.map(|cost| (cost - lost).max(0.0)), ..budget },
            objective,
            prior: seen,
            on_round: Some(on_round),
            halt: Some(&halt),
            ..Options::default()
        };
        let mut problem = Ok(());
        let selection = {
            let search = select_best(&space, selector.as_mut(), &evaluate, options);
            tokio::pin!(search);
            let mut watch = underway.watch();
            loop {
                tokio::select! {
                    selection = &mut search => break selection,
                    Some(what) = heard.recv() => {
                        let heard = hear(what, &mut underway);
                        let ended = heard.is_err() || matches!(heard, Ok(Ended::ForGood));
                        broken.fetch_or(ended, Ordering::Relaxed);
                        problem = problem.and(heard.map(|_| ()));
                    }
                    Some(event) = underway.told.recv() => {
                        problem = problem.and(underway.record.told(&event));
                    }
                    _ = watch.tick() => underway.look(),
                }
            }
        };
        drop(evaluate);
        // What was told last, and not heard.
        while let Ok(what) = heard.try_recv() {
            problem = problem.and(hear(what, &mut underway).map(|_| ()));
        }
        let selection = selection.map(|found| Selection { spent: found.spent + lost, ..found });
        let finished = underway.end(&self, problem, &[], stopper)?;
        let exit_code = match &selection {
            _ if stopper.is_stopped() => ExitCode::Interrupted,
            Ok(Selection { stopped: None, .. }) => ExitCode::Passed,
            Err(SelectError::TooDear { .. }) => ExitCode::Failed,
            Ok(_) | Err(_) => ExitCode::Inconclusive,
        };
        if let Ok(selection) = &selection {
            let file = SelectionFile::new(&self, &finished.folder.id, &space, selection);
            file.write(&finished.folder)?;
        }
        Ok(Searched { folder: finished.folder, selection, exit_code })
    }
}

/// Whether a search can go on after what it was told.
enum Ended {
    No,
    /// An account is used up: whatever else is asked will not be answered.
    ForGood,
}

fn hear(what: Told, underway: &mut Underway<'_>) -> Result<Ended, Error> {
    match what {
        Told::Started(key) => underway.record.tell(&Event::TrialStarted { key }),
        Told::Unreadable(problem) => return Err(Error::Cases(problem)),
        Told::Ended(made, written) => {
            let error = made.result.attempt.error.as_ref();
            let used_up = error.is_some_and(|error| error.kind == ErrorKind::Quota);
            let is_error = made.result.status == Status::Error;
            underway.record.trials(vec![*made])?;
            // Who asked may be gone.
            let _ = written.send(());
            if used_up && is_error {
                return Ok(Ended::ForGood);
            }
        }
    }
    Ok(Ended::No)
}

fn at_once(suite: &Suite) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let heavy = suite.targets.iter().any(|target| {
        target.is_program() || target.agent().is_some_and(crate::AgentSettings::starts_programs)
    });
    let usual = if heavy { cores } else { MOST_AT_ONCE };
    suite.settings.parallel.map_or(usual, |most| most as usize)
}

impl Searched {
    /// What ended the search early.
    pub fn stopped(&self) -> Option<Limit> {
        self.selection.as_ref().ok().and_then(|selection| selection.stopped)
    }
}
