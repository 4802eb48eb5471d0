//! A run on disk, finished or not.

use crate::Error;
use bakeoff_core::{Event, RunStats, Summary, TrialResult};
use bakeoff_eval::{Aggregate, JOURNAL_FILE, JournalDamage, RunCriteria, RunFile, SUMMARY_FILE};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A run on disk, finished or not.
#[derive(Debug)]
pub struct PastRun {
    /// Path of its folder.
    pub path: PathBuf,
    /// Contents of its `run.json`.
    pub file: RunFile,
    criteria: RunCriteria,
    /// Set when the journal is first read.
    scan: OnceLock<JournalScan>,
}

/// What a first reading of the journal finds.
#[derive(Debug)]
struct JournalScan {
    /// For each trial the number of the line with its last result, from 1; 0 if there is none.
    last_lines: Vec<Vec<u32>>,
    damage: JournalDamage,
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
        Ok(PastRun { path: path.to_owned(), file, criteria, scan: OnceLock::new() })
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

    /// Returns the last result of each trial, in the order of the journal. Damaged lines are skipped; see
    /// [`PastRun::damage`].
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
        let last = &self.scan()?.last_lines;
        let last_result =
            move |(line, event): (u32, Result<Event, bakeoff_journal::Error>)| match event {
                Ok(Event::TrialFinished { result }) => {
                    let (target, trial) = self.criteria.position(&result.key)?;
                    (last[target][trial] == line).then_some(Ok(*result))
                }
                Ok(_) | Err(bakeoff_journal::Error::Damaged { .. }) => None,
                Err(error) => Some(Err(error)),
            };
        Ok((1..).zip(self.events()?).filter_map(last_result))
    }

    /// Returns the lines of the journal that cannot be read. Those before the last resume are left out, because their
    /// trials have run again since.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read.
    pub fn damage(&self) -> Result<&JournalDamage, Error> {
        Ok(&self.scan()?.damage)
    }

    /// Reads the journal once to find the last result of each trial.
    fn scan(&self) -> Result<&JournalScan, Error> {
        if let Some(scan) = self.scan.get() {
            return Ok(scan);
        }
        let trials = self.criteria.plan.total();
        let mut scan = JournalScan {
            last_lines: vec![vec![0; trials]; self.criteria.targets.len()],
            damage: JournalDamage {
                is_missing: !self.journal().exists(),
                ..JournalDamage::default()
            },
        };
        for (number, event) in (1..).zip(self.events()?) {
            match event {
                Ok(Event::TrialFinished { result }) => {
                    if let Some((target, trial)) = self.criteria.position(&result.key) {
                        scan.last_lines[target][trial] = number;
                    }
                }
                Ok(Event::RunResumed { .. }) => scan.damage.resume(),
                Ok(_) => {}
                Err(bakeoff_journal::Error::Damaged { line, .. }) => scan.damage.add_line(line),
                Err(error) => return Err(error.into()),
            }
        }
        let found = scan.last_lines.iter().flatten().filter(|line| **line > 0).count();
        scan.damage = scan.damage.finish(found as u64, counted_results(&self.path));
        Ok(self.scan.get_or_init(|| scan))
    }

    /// Returns the events of the journal; none if it is missing.
    fn events(
        &self,
    ) -> Result<impl Iterator<Item = Result<Event, bakeoff_journal::Error>> + use<>, Error> {
        let path = self.journal();
        let events = if path.exists() { Some(bakeoff_journal::read(&path)?) } else { None };
        Ok(events.into_iter().flatten())
    }

    fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }
}
/// Returns the number of results that the summary of a run counts; 0 if there is no readable one.
pub(crate) fn counted_results(folder: &Path) -> u64 {
    let bytes = std::fs::read(folder.join(SUMMARY_FILE)).unwrap_or_default();
    let summary = serde_json::from_slice::<Summary>(&bytes);
    let targets = summary.map(|summary| summary.targets).unwrap_or_default();
    targets.iter().map(|target| target.counted + target.errors).sum()
}
