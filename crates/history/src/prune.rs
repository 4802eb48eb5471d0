//! Finding and deleting old runs.

use crate::Error;
use crate::list::run_folders;
use bakeoff_eval::{JOURNAL_FILE, RUN_FILE, RunFile, SUMMARY_FILE};
use bakeoff_journal::{Journal, is_open};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A run that can be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldRun {
    /// Path of its folder.
    pub path: PathBuf,
    /// Size of its files in bytes.
    pub bytes: u64,
}

/// Returns the runs in a folder that no process has changed since `before`, oldest last. Other folders, links and
/// running runs are left out.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn old_runs(parent: &Path, before: SystemTime) -> Result<Vec<OldRun>, Error> {
    let old = run_folders(parent)?.into_iter().filter(|path| is_old_run(path, before));
    Ok(old.map(|path| OldRun { bytes: size(&path), path }).collect())
}

impl OldRun {
    /// Deletes the run unless a process has started to use it. Returns whether it is deleted.
    ///
    /// # Errors
    ///
    /// When a file cannot be deleted.
    pub fn delete(&self) -> Result<bool, Error> {
        // Holding the journal prevents that the run is resumed meanwhile.
        let journal = self.path.join(JOURNAL_FILE);
        let lock = if journal.exists() { Some(Journal::reopen(&journal)) } else { None };
        if matches!(lock, Some(Err(bakeoff_journal::Error::Locked { .. }))) {
            return Ok(false);
        }
        fs::remove_dir_all(&self.path)
            .map(|()| true)
            .map_err(|source| Error::Delete { path: self.path.clone(), source })
    }
}

/// Whether the folder is that of a run, with the run's name, and was last changed before this time.
fn is_old_run(path: &Path, before: SystemTime) -> bool {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let has_own_name = RunFile::read(path)
        .is_ok_and(|file| path.file_name().is_some_and(|name| name == file.run_id.as_str()));
    let changes = [RUN_FILE, JOURNAL_FILE, SUMMARY_FILE]
        .iter()
        .filter_map(|name| fs::metadata(path.join(name)).ok()?.modified().ok());
    is_folder
        && has_own_name
        && changes.max().is_some_and(|last| last < before)
        && !is_open(&path.join(JOURNAL_FILE))
}

/// Returns the size of all files below a folder; unreadable ones count as empty.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.len()),
    });
    sizes.sum()
}
