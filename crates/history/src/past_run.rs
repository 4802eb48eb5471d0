//! A run on disk, finished or not.

use crate::Error;
use bakeoff_core::{Event, RunStats, Summary, TrialKey, TrialResult};
use bakeoff_eval::{Aggregate, JOURNAL_FILE, RunCriteria, RunFile, SUMMARY_FILE};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A run on disk, finished or not.
#[derive(Debug)]
pub struct PastRun {
    /// Path of its folder.
    pub path: PathBuf,
    /// Contents of its `run.json`.
    pub file: RunFile,
    criteria: RunCriteria,
}

impl PastRun {
    /// Opens the folder of a run.
    ///
    /// # Errors
    ///
    /// When its `run.json` cannot be read.
    pub fn open(path: &Path) -> Result<PastRun, Error> {
        let file = RunFile::read(path)?;
        let criteria = file.criteria();
        Ok(PastRun { path: path.to_owned(), file, criteria })
    }

    /// Returns its summary. Without one, because the run was killed or is still running, the journal is
    /// summarized.
    ///
    /// # Errors
    ///
    /// When the summary or the journal cannot be read.
    pub fn summary(&self) -> Result<Summary, Error> {
        let path = self.path.join(SUMMARY_FILE);
        match std::fs::read(&path) {
            // The journal has all results, in case the file is damaged.
            Ok(bytes) => serde_json::from_slice(&bytes).or_else(|_| self.summarize_journal()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.summarize_journal(),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Whether the run has a summary.
    pub fn is_finished(&self) -> bool {
        self.path.join(SUMMARY_FILE).is_file()
    }

    fn summarize_journal(&self) -> Result<Summary, Error> {
        let mut aggregate = Aggregate::new(self.criteria.clone());
        for result in self.results()? {
            aggregate.add(&result?);
        }
        let stats = RunStats { started_at: self.file.started_at.clone(), ..RunStats::default() };
        Ok(aggregate.summary(&self.file.run_id, &self.file.suite.name, stats))
    }

    /// Returns the last result of each trial, in the order of the journal.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read.
    pub fn results(
        &self,
    ) -> Result<impl Iterator<Item = Result<TrialResult, Error>> + use<'_>, Error> {
        Ok(self.journaled_results()?.map(|result| result.map_err(Error::Journal)))
    }

    /// Returns the results with the errors of the journal, for [`bakeoff_eval::rescore`].
    pub(crate) fn journaled_results(
        &self,
    ) -> Result<impl Iterator<Item = Result<TrialResult, bakeoff_journal::Error>> + use<'_>, Error>
    {
        let last = self.last_lines()?;
        let events = bakeoff_journal::read::<Event>(&self.journal())?;
        let last_result =
            move |(line, event): (u32, Result<Event, bakeoff_journal::Error>)| match event {
                Ok(Event::TrialFinished { result }) => {
                    let (target, trial) = self.criteria.position(&result.key)?;
                    (last[target][trial] == line).then_some(Ok(*result))
                }
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            };
        Ok((1..).zip(events).filter_map(last_result))
    }

    /// Returns for each trial the number of the line with its last result, from 1; 0 if there is none.
    fn last_lines(&self) -> Result<Vec<Vec<u32>>, Error> {
        /// The parts of an event that identify its trial.
        #[derive(Deserialize)]
        struct EventHead {
            event: String,
            result: Option<ResultHead>,
        }
        #[derive(Deserialize)]
        struct ResultHead {
            key: TrialKey,
        }
        let trials = self.criteria.cases.len() * self.criteria.trials as usize;
        let mut last = vec![vec![0; trials]; self.criteria.targets.len()];
        for (number, line) in (1..).zip(bakeoff_journal::read::<EventHead>(&self.journal())?) {
            let line = line?;
            let key = line.result.filter(|_| line.event == "trial_finished");
            let position = key.and_then(|result| self.criteria.position(&result.key));
            if let Some((target, trial)) = position {
                last[target][trial] = number;
            }
        }
        Ok(last)
    }

    fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }
}
