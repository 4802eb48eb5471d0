//! Listing the runs in a folder.

use crate::find::is_run;
use bakeoff_core::{RunId, Summary, TargetName, Verdict};
use bakeoff_eval::{JOURNAL_FILE, RUN_FILE, SUMMARY_FILE, SelectionFile};
use chrono::{DateTime, Utc};
use std::path::{Path, PathBuf};

/// A run on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// Id of the run.
    pub id: RunId,
    /// Path of its folder.
    pub path: PathBuf,
    /// State of the run.
    pub state: RunState,
}

/// State of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunState {
    /// The run has a summary.
    Finished {
        /// Name of the suite.
        suite: String,
        /// Verdict of the run.
        verdict: Verdict,
        /// Whether a signal ended the run before all trials had a result.
        interrupted: bool,
        /// Per target: name, passed cases, cases.
        targets: Vec<(TargetName, u64, u64)>,
    },
    /// The search has a result.
    FinishedSearch {
        /// Name of the suite.
        suite: String,
        /// Name of the winning combination.
        best: String,
        /// Confidence in the winner, if the method gives one.
        confidence: Option<f64>,
        /// Limit that stopped the search early.
        stopped: Option<bakeoff_select::SearchLimit>,
    },
    /// The run has no summary.
    Unfinished {
        /// Finished trials in the journal.
        trials: u64,
        /// Whether a process works on it; it was killed otherwise.
        running: bool,
    },
}

/// Returns the runs in a folder, newest first. Other folders are ignored.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn list(parent: &Path) -> Result<Vec<StoredRun>, crate::Error> {
    let run = |path: PathBuf| {
        let id = path.file_name()?.to_str()?.to_owned();
        Some(StoredRun { id: id.into(), state: state(&path), path })
    };
    Ok(run_folders(parent)?.into_iter().filter_map(run).collect())
}

/// Returns the folders of all runs, newest first.
pub(crate) fn run_folders(parent: &Path) -> Result<Vec<PathBuf>, crate::Error> {
    let entries = match std::fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(crate::Error::Read { path: parent.to_owned(), source });
        }
    };
    let entries = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = entries.filter(|path| is_run(path)).collect();
    runs.sort_by_cached_key(|path| std::cmp::Reverse((started_at(path), path.clone())));
    Ok(runs)
}

/// Reads the start time of a run; its id has it only to the second.
fn started_at(path: &Path) -> Option<DateTime<Utc>> {
    let bytes = std::fs::read(path.join(RUN_FILE)).ok()?;
    let run: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    run["started_at"].as_str()?.parse().ok()
}

fn state(path: &Path) -> RunState {
    if let Ok(Some(file)) = SelectionFile::read(path) {
        return RunState::FinishedSearch {
            best: file.winner().to_owned(),
            suite: file.suite,
            confidence: file.selection.confidence,
            stopped: file.selection.stopped,
        };
    }
    let summary = std::fs::read(path.join(SUMMARY_FILE))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Summary>(&bytes).ok());
    match summary {
        Some(summary) => RunState::Finished {
            suite: summary.suite,
            verdict: summary.verdict,
            interrupted: summary.stats.interrupted,
            targets: summary
                .targets
                .into_iter()
                .map(|target| (target.target, target.passed, target.total_cases))
                .collect(),
        },
        None => RunState::Unfinished {
            trials: journaled_trials(path),
            running: bakeoff_journal::is_open(&path.join(JOURNAL_FILE)),
        },
    }
}

fn journaled_trials(path: &Path) -> u64 {
    let Ok(lines) = bakeoff_journal::read::<bakeoff_core::Event>(&path.join(JOURNAL_FILE)) else {
        return 0;
    };
    let is_trial =
        |event: &bakeoff_core::Event| matches!(event, bakeoff_core::Event::TrialFinished { .. });
    lines.filter_map(Result::ok).filter(is_trial).count() as u64
}
