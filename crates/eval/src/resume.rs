//! State of an interrupted run, from which [`Run`] continues.

use crate::aggregate::Aggregate;
use crate::case_files::CaseFiles;
use crate::folder::RunFolder;
use crate::journal_damage::JournalDamage;
use crate::run::Run;
use crate::run_file::RunFile;
use bakeoff_core::{Event, ProcessGroup, TrialKey};
use bakeoff_journal::Journal;
use std::collections::HashMap;
use std::path::Path;

/// State of an interrupted run: its folder, its journal, open for writing, and the results in it.
///
/// `bakeoff-history` reads it; [`Run::resume_from`] takes it.
#[derive(Debug)]
pub struct ResumeState {
    pub(crate) folder: RunFolder,
    pub(crate) file: RunFile,
    pub(crate) journal: Journal,
    pub(crate) aggregate: Aggregate,
    pub(crate) case_files: CaseFiles,
    /// Lines of the journal that could not be replayed.
    pub(crate) damage: JournalDamage,
    /// Process groups of trials without a result.
    running: HashMap<TrialKey, Vec<ProcessGroup>>,
}

impl ResumeState {
    /// Creates the state of an earlier run with no events replayed. `journal` must be open for
    /// writing, so that no other process changes the run.
    pub fn new(run: &Run, path: &Path, file: RunFile, journal: Journal) -> ResumeState {
        ResumeState {
            folder: RunFolder::open(path, &file),
            file,
            journal,
            aggregate: Aggregate::new(run.criteria.clone()),
            case_files: CaseFiles::new(&run.suite),
            damage: JournalDamage::default(),
            running: HashMap::new(),
        }
    }

    /// Sets the lines of the journal that could not be read. Their trials are executed again.
    #[must_use]
    pub fn with_damage(self, damage: JournalDamage) -> ResumeState {
        ResumeState { damage, ..self }
    }

    /// Replays one event of the journal.
    pub fn replay(&mut self, event: Event) {
        match event {
            Event::TrialFinished { result } => {
                self.running.remove(&result.key);
                self.aggregate.add(&result);
                self.case_files.add(&result);
            }
            Event::ProgramStarted { key, group } => {
                self.running.entry(key).or_default().push(group);
            }
            _ => {}
        }
    }

    /// Returns the process groups that may have survived the earlier process.
    pub(crate) fn left_behind(&self) -> Vec<ProcessGroup> {
        self.running.values().flatten().cloned().collect()
    }
}
