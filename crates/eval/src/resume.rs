//! Going on with a run that was interrupted, killed, or is made larger.

use crate::Error;
use crate::aggregate::Aggregate;
use crate::casefile::CaseFiles;
use crate::folder::RunFolder;
use crate::runfile::{Differences, Layout, RunFile, differences};
use crate::suite::Suite;
use bakeoff_core::{Event, ProcessGroup, RunId, TrialKey};
use std::collections::HashMap;
use std::path::Path;

/// Refuses to mix results of different plans.
pub(crate) fn agree(
    then: &RunFile,
    now: &RunFile,
    suite: &Suite,
    may_extend: bool,
) -> Result<(), Error> {
    let Differences { more, other } = differences(then, now, suite);
    let usage = |message: String, hint: &str| {
        Err(Error::Usage { code: None, message, hint: Some(hint.to_owned()) })
    };
    let run = then.run_id.as_str();
    if !other.is_empty() {
        return usage(
            format!("{run} cannot go on, its plan was another: {}", other.join("; ")),
            "start a new run, or `bakeoff score` to judge its outputs by other checks",
        );
    }
    if !more.is_empty() && !may_extend {
        return usage(
            format!("{run} had less to do: {}", more.join("; ")),
            "`--extend` makes the run larger",
        );
    }
    if then.layout == Layout::Flat && now.layout != Layout::Flat {
        return usage(
            format!("{run} has a single target and its folder no room for another"),
            "start a new run with all targets",
        );
    }
    Ok(())
}

/// Reads what an earlier process has journaled. Gives the process groups that it left behind.
pub(crate) fn recall(
    folder: &RunFolder,
    aggregate: &mut Aggregate,
    files: &mut CaseFiles,
) -> Result<Vec<ProcessGroup>, Error> {
    let mut running: HashMap<TrialKey, Vec<ProcessGroup>> = HashMap::new();
    for event in bakeoff_journal::read::<Event>(&folder.journal())? {
        match event? {
            Event::TrialFinished { result } => {
                running.remove(&result.key);
                aggregate.add(&result);
                files.add(&result);
            }
            Event::ProgramStarted { key, group } => {
                running.entry(key).or_default().push(group);
            }
            _ => {}
        }
    }
    Ok(running.into_values().flatten().collect())
}

/// Ends programs of a run whose process has died. Gives how many processes are still there.
pub(crate) fn end_left_behind(run: &RunId, groups: &[ProcessGroup]) -> usize {
    bakeoff_agent::terminate_orphans(run.as_str(), groups)
}

/// Removes the workspaces that an earlier process left behind.
pub(crate) fn sweep(work: &Path) {
    // An empty folder is all that is ever left of it.
    let _ = std::fs::remove_dir_all(work);
}

/// Removes files that an earlier process was writing when it died.
pub(crate) fn sweep_unfinished(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => sweep_unfinished(&path),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == "tmp") => {
                // One that stays does no harm.
                let _ = std::fs::remove_file(path);
            }
            _ => {}
        }
    }
}
