//! A run on disk, finished or not: what it found, from its journal alone.

use crate::Error;
use bakeoff_core::{Event, RunStats, Summary, TrialKey, TrialResult};
use bakeoff_eval::{Aggregate, JOURNAL_FILE, Measure, RunFile, SUMMARY_FILE};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A run on disk.
#[derive(Debug)]
pub struct PastRun {
    /// Its folder.
    pub path: PathBuf,
    /// What was asked for.
    pub file: RunFile,
    measure: Measure,
}

impl PastRun {
    /// Opens the folder of a run.
    pub fn open(path: &Path) -> Result<PastRun, Error> {
        let file = RunFile::read(path)?;
        let measure = file.measure();
        Ok(PastRun { path: path.to_owned(), file, measure })
    }

    /// What is said of it: its summary, or, when it has none because it was killed or still goes on,
    /// what can be said so far.
    pub fn summary(&self) -> Result<Summary, Error> {
        let path = self.path.join(SUMMARY_FILE);
        match std::fs::read(&path) {
            // The journal knows it all, should the file be damaged.
            Ok(bytes) => serde_json::from_slice(&bytes).or_else(|_| self.recount()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.recount(),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Whether it came to its end.
    pub fn is_finished(&self) -> bool {
        self.path.join(SUMMARY_FILE).is_file()
    }

    fn recount(&self) -> Result<Summary, Error> {
        let mut aggregate = Aggregate::new(self.measure.clone());
        for result in self.results()? {
            aggregate.add(&result?);
        }
        let stats = RunStats { started_at: self.file.started_at.clone(), ..RunStats::default() };
        Ok(aggregate.summary(&self.file.run_id, &self.file.suite.name, stats))
    }

    /// The last result of each trial, in the order in which they came.
    pub fn results(
        &self,
    ) -> Result<impl Iterator<Item = Result<TrialResult, Error>> + use<'_>, Error> {
        let last = self.last_lines()?;
        let events = bakeoff_journal::read::<Event>(&self.journal())?;
        let wanted = move |(line, event): (u32, Result<Event, bakeoff_journal::Error>)| match event
        {
            Ok(Event::TrialFinished { result }) => {
                let (target, place) = self.measure.place(&result.key)?;
                (last[target][place] == line).then_some(Ok(*result))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error.into())),
        };
        Ok((1..).zip(events).filter_map(wanted))
    }

    /// For each trial the number of the line with its last result, from 1; 0 when there is none.
    fn last_lines(&self) -> Result<Vec<Vec<u32>>, Error> {
        /// As much of an event as tells which trial it is about.
        #[derive(Deserialize)]
        struct Line {
            event: String,
            result: Option<OfTrial>,
        }
        #[derive(Deserialize)]
        struct OfTrial {
            key: TrialKey,
        }
        let trials = self.measure.cases.len() * self.measure.trials as usize;
        let mut last = vec![vec![0; trials]; self.measure.targets.len()];
        for (number, line) in (1..).zip(bakeoff_journal::read::<Line>(&self.journal())?) {
            let line = line?;
            let key = line.result.filter(|_| line.event == "trial_finished");
            if let Some((target, place)) = key.and_then(|result| self.measure.place(&result.key)) {
                last[target][place] = number;
            }
        }
        Ok(last)
    }

    fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }
}
