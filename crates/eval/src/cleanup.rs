//! Cleanup after a process that died: its programs, workspaces and unfinished files.

use bakeoff_core::{ProcessGroup, RunId};
use std::path::Path;

/// Ends the programs of a run whose process has died. Returns the number of surviving processes.
pub(crate) fn end_programs(run: &RunId, groups: &[ProcessGroup]) -> usize {
    bakeoff_agent::terminate_orphans(run.as_str(), groups)
}

/// Removes the workspaces that version 0.1.0 created in the folder of a run.
pub(crate) fn remove_old_workspaces(run: &Path) {
    // At most a folder that nothing reads stays behind.
    let _ = bakeoff_agent::remove_folder(&run.join("work"));
}

/// Removes temporary files of writes that were interrupted.
pub(crate) fn remove_temporary_files(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => remove_temporary_files(&path),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == "tmp") => {
                // A file that cannot be removed is harmless.
                let _ = std::fs::remove_file(path);
            }
            _ => {}
        }
    }
}
