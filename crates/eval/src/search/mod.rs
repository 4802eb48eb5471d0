//! A run that makes only the trials that a search asks for.
//!
//! Each combination is a target of its own, so that what is journaled, reported and gone on with is
//! what it is in any run.

mod cells;
mod file;
mod prices;
mod propose;
mod routing;
mod setup;

pub use file::SelectionFile;
pub use setup::{Search, SearchOverrides};

use crate::Error;
use crate::folder::RunFolder;
use crate::run::Stopper;
use crate::trial::Trials;
use crate::underway::Underway;
use bakeoff_core::{ErrorKind, Event, ExitCode, NanoDollars};
use bakeoff_select::{
    Budget, OnRound, Options, OptionsError, Propose, SelectError, Selection, Selector, named,
    select_best,
};
use bakeoff_suite::{AgentSettings, Suite};
use cells::{Cells, Known, Told};
use propose::{Proposer, briefing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// Cells of models at once, when nobody says: pools let through what providers allow.
const MOST_AT_ONCE: usize = 200;

/// A search that is over.
#[derive(Debug)]
pub struct Searched {
    /// The run's folder.
    pub folder: RunFolder,
    /// What was found; an error when nobody could be chosen.
    pub found: Result<SelectionFile, SelectError>,
    /// What the shell is told.
    pub exit_code: ExitCode,
}

impl Search {
    /// Makes the trials that the search asks for, until it has seen enough or may take no more.
    /// Everything that happens is told to `listen`, in order, and rounds to `on_round`.
    ///
    /// # Errors
    ///
    /// When results cannot be written; what had been written stays.
    pub async fn execute(
        mut self,
        stopper: &Stopper,
        listen: &mut (dyn FnMut(&Event) + Send),
        on_round: OnRound<'_>,
    ) -> Result<Searched, Error> {
        let (mut underway, judged) = self.run.begin(stopper, listen)?;
        let mut known = match judged.is_empty() {
            true => Known::default(),
            false => cells::known(&self.run, &underway.folder.journal())?,
        };
        let selector = match self.propose(&underway.trials).await {
            // What a proposal costs is no cell's.
            Ok(cost) => {
                known.lost += cost.as_dollars();
                named(&self.method, &self.space, &self.options)
            }
            Err(why) => Err(OptionsError::NotProposed(why)),
        };
        let (problem, found) = match selector {
            Ok(mut selector) => {
                self.rounds(selector.as_mut(), known, &mut underway, stopper, on_round).await?
            }
            Err(error) => (Ok(()), Err(SelectError::NothingObserved(error.to_string()))),
        };
        let finished = underway.end(&self.run, problem, &[], stopper)?;
        let exit_code = match &found {
            _ if stopper.is_stopped() => ExitCode::Interrupted,
            Ok(Selection { stopped: None, .. }) => ExitCode::Passed,
            Err(SelectError::TooDear { all: true, .. }) => ExitCode::Failed,
            Ok(_) | Err(_) => ExitCode::Inconclusive,
        };
        let found = match found {
            Ok(selection) => {
                let file = SelectionFile::new(&self, &finished.folder.id, selection);
                file.write(&finished.folder)?;
                Ok(file)
            }
            Err(error) => Err(error),
        };
        Ok(Searched { folder: finished.folder, found, exit_code })
    }

    /// All rounds. The first result says whether everything could be written.
    async fn rounds(
        &self,
        selector: &mut dyn Selector,
        known: Known,
        underway: &mut Underway<'_>,
        stopper: &Stopper,
        on_round: OnRound<'_>,
    ) -> Result<(Result<(), Error>, Result<Selection, SelectError>), Error> {
        let suite = &self.run.suite;
        let (told, mut heard) = mpsc::unbounded_channel();
        let evaluate = Cells {
            trials: Arc::clone(&underway.trials),
            cases: suite.cases.reader(&suite.survey).map_err(Error::Cases)?,
            chosen: Arc::clone(&self.run.chosen),
            told,
        };
        let broken = AtomicBool::new(false);
        let halt = || broken.load(Ordering::Relaxed) || stopper.is_stopped();
        let left = self.budget.cost.map(|cost| (cost - known.lost).max(0.0));
        let options = Options {
            max_concurrent: at_once(suite),
            budget: Budget { cost: left, ..self.budget },
            objective: self.options.objective,
            prior: known.seen,
            on_round: Some(on_round),
            halt: Some(&halt),
            ..Options::default()
        };
        let search = select_best(&self.space, selector, &evaluate, options);
        tokio::pin!(search);
        let mut watch = underway.watch();
        let mut problem = Ok(());
        let found = loop {
            tokio::select! {
                found = &mut search => break found,
                Some(what) = heard.recv() => {
                    problem = problem.and(hear(what, underway, &broken));
                    broken.fetch_or(problem.is_err(), Ordering::Relaxed);
                }
                Some(event) = underway.told.recv() => {
                    problem = problem.and(underway.record.told(&event));
                }
                _ = watch.tick() => underway.look(),
            }
        };
        // Nobody waits for what was told last.
        while let Ok(what) = heard.try_recv() {
            problem = problem.and(hear(what, underway, &broken));
        }
        let found = found.map(|found| Selection { spent: found.spent + known.lost, ..found });
        Ok((problem, found))
    }

    /// Asks the model that proposes, where there is one; gives what that cost, or why nothing came of
    /// it.
    async fn propose(&mut self, trials: &Trials) -> Result<NanoDollars, String> {
        let plan = self.run.suite.select.as_ref();
        let Some((_, model)) = plan.and_then(|plan| plan.proposer.as_ref()) else {
            return Ok(NanoDollars::default());
        };
        if self.method != setup::PROPOSALS {
            return Ok(NanoDollars::default());
        }
        let proposer = Proposer { trials, model, spent: Mutex::default() };
        let briefing = briefing(self);
        let mut proposals = proposer.propose(&briefing).await?;
        proposals.truncate(briefing.most);
        self.options.proposals = Some(proposals);
        Ok(proposer.spent.into_inner().unwrap_or_default())
    }
}

/// Keeps what a cell has told.
fn hear(what: Told, underway: &mut Underway<'_>, broken: &AtomicBool) -> Result<(), Error> {
    match what {
        Told::Started(key) => underway.record.tell(&Event::TrialStarted { key }),
        Told::Unreadable(problem) => return Err(Error::Cases(problem)),
        Told::Ended(made, written) => {
            let error = made.result.attempt.error.as_ref();
            if let Some(error) = error.filter(|error| error.kind == ErrorKind::Quota)
                && !broken.swap(true, Ordering::Relaxed)
            {
                let message = format!("the search ends, an account is used up: {}", error.message);
                let code = "EVAL_QUOTA_USED_UP".to_owned();
                underway.record.tell(&Event::Warning { code, message });
            }
            underway.record.trials(vec![*made])?;
            // Who asked may be gone.
            let _ = written.send(());
        }
    }
    Ok(())
}

fn at_once(suite: &Suite) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let heavy = suite.targets.iter().any(|target| {
        target.is_program() || target.agent().is_some_and(AgentSettings::starts_programs)
    });
    let usual = if heavy { cores } else { MOST_AT_ONCE };
    suite.settings.parallel.map_or(usual, |most| most as usize)
}
