//! From a plan to work: files are opened, and what was done before is taken into account.

use super::ask::{Asker, Traits};
use super::budget::Budget;
use super::continued::failed;
use super::facts::Facts;
use super::output::Output;
use super::record::Line;
use super::resume::Replay;
use super::shelf::Shelf;
use super::source::Source;
use super::work::{Bounds, Work};
use super::{Finished, Job, Progress, facts_of, journal_of};
use crate::error::Error;
use bakeoff_core::NanoDollars;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;
use tokio_util::sync::CancellationToken;

impl Job {
    /// Does the job, or what is left of it. `stop` lets requests that are under way finish, and
    /// starts no others. `listen` is told how far it is, whenever rows have been written.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written. What has been journaled is not lost.
    pub async fn run(
        mut self,
        stop: CancellationToken,
        listen: &mut (dyn FnMut(&Progress) + Send),
    ) -> Result<Finished, Error> {
        let earlier = &self.earlier;
        let mut progress = Progress {
            rows: self.plan.rows,
            done: 0,
            errors: 0,
            settled: 0,
            requests: earlier.spent.requests,
            again: earlier.again,
            under_way: 0,
            cached: earlier.spent.cached,
            cost: earlier.spent.cost,
            usage: earlier.spent.usage,
        };
        let rounds = earlier.rounds + usize::from(self.plan.is_again);
        if let (true, Some(ending)) = (self.plan.is_finished, &earlier.ending) {
            (progress.done, progress.settled) = (progress.rows, progress.rows);
            progress.errors = ending.errors;
            return Ok(Finished { progress, stop: None, refused: Vec::new() });
        }
        let replay = match self.plan.is_resumed {
            true => {
                self.begin_round()?;
                Replay::new(&journal_of(&self.config.output))?
            }
            false => {
                self.begin()?;
                Replay::nothing()
            }
        };
        let config = self.config;
        let output = Output::open(&config.output, self.layout)?;
        let facts = Facts::open(&facts_of(&config.output), &config.task)?;
        let shelf = Shelf::new(self.journal, output, facts);
        let source = Source::new(&config.input, self.limits, self.survey)?;
        let asker = Asker {
            client: self.client,
            task: config.task,
            format: self.format,
            seed: config.seed,
            traits: config.models.iter().map(|_| Traits::default()).collect(),
            models: config.models,
            rounds,
            stop: stop.child_token(),
        };
        let spent = progress.cost.unwrap_or(NanoDollars(0));
        let budget = Budget::new(config.max_cost, spent, progress.requests);
        let bounds = Bounds { budget, held: config.held };
        Work::new(asker, shelf, replay, bounds, progress, listen).go(source, &stop).await
    }

    /// Rows that have no answer may have one at the end: their lines are written anew. Should it be
    /// killed in between, the same rows come out as before.
    fn begin_round(&mut self) -> Result<(), Error> {
        if self.plan.is_again {
            empty(&self.config.output)?;
            self.remove_facts()?;
            self.journal.push(&Line::Again)?;
            self.journal.flush()?;
        }
        Ok(())
    }

    /// Forgets what there is, and writes the first line of the journal. Should it be killed between
    /// any two steps, the next process finds a job that it can go on with, or none.
    fn begin(&mut self) -> Result<(), Error> {
        empty(&self.config.output)?;
        self.remove_facts()?;
        self.journal.clear()?;
        self.journal.push(&Line::Plan(self.record.clone()))?;
        Ok(self.journal.flush()?)
    }

    /// Where a task asks for none, the file is somebody else's.
    fn remove_facts(&self) -> Result<(), Error> {
        match self.config.task.batch.is_empty() {
            true => Ok(()),
            false => remove(&facts_of(&self.config.output)),
        }
    }
}

/// Empties a file, if there is one; what points to it stays.
fn empty(path: &Path) -> Result<(), Error> {
    match OpenOptions::new().write(true).truncate(true).open(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(failed("empty", path, source)),
        _ => Ok(()),
    }
}

/// Removes a file, if there is one.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(failed("remove", path, source)),
        _ => Ok(()),
    }
}
