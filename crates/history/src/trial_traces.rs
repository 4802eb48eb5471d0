//! Stored exchanges between trials and their targets (`trace.jsonl`).

use crate::Error;
use bakeoff_core::TrialKey;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// Levels of folders between a run and its trials: target, which may be left out, and case.
const MAX_LEVELS: usize = 2;

/// Stored exchange of a trial with its target.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TrialTrace {
    /// Trial.
    pub key: TrialKey,
    /// Requests, responses and events in order.
    pub entries: Vec<Value>,
}

/// Returns the exchanges of a run's trials, ordered by folder. Trials without files are left out; the setting
/// `artifacts` decides which trials have files.
///
/// # Errors
///
/// When the folder of the run cannot be read. Each trace is an error when its files cannot be read.
pub fn trial_traces(
    run: &Path,
) -> Result<impl Iterator<Item = Result<TrialTrace, Error>> + use<>, Error> {
    let mut folders = Vec::new();
    collect_trials(run, MAX_LEVELS, &mut folders)?;
    folders.sort();
    Ok(folders.into_iter().map(|(_, _, folder)| read_trace(&folder)))
}

/// Collects the folders of trials with the path of their case and their number, which defines the order.
fn collect_trials(
    folder: &Path,
    levels: usize,
    found: &mut Vec<(PathBuf, u32, PathBuf)>,
) -> Result<(), Error> {
    let unreadable = |source| Error::Read { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if !entry.file_type().map_err(unreadable)?.is_dir() {
            continue;
        }
        let path = entry.path();
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("trial-")?.parse().ok());
        match number {
            Some(number) if path.join("trace.jsonl").is_file() => {
                found.push((folder.to_owned(), number, path));
            }
            _ if levels > 0 => collect_trials(&path, levels - 1, found)?,
            _ => {}
        }
    }
    Ok(())
}

fn read_trace(folder: &Path) -> Result<TrialTrace, Error> {
    /// The part of a result that identifies its trial.
    #[derive(Deserialize)]
    struct ResultHead {
        key: TrialKey,
    }
    let head: ResultHead = serde_json::from_str(&read(folder, "result.json")?)
        .map_err(|error| damaged(folder, "result.json", error))?;
    Ok(TrialTrace { key: head.key, entries: read_entries(folder)? })
}

/// Reads the entries of a trial's trace.
pub(crate) fn read_entries(folder: &Path) -> Result<Vec<Value>, Error> {
    let text = read(folder, "trace.jsonl")?;
    let lines = text.lines().filter(|line| !line.is_empty()).map(serde_json::from_str);
    lines.collect::<Result<_, _>>().map_err(|error| damaged(folder, "trace.jsonl", error))
}

fn read(folder: &Path, name: &str) -> Result<String, Error> {
    let path = folder.join(name);
    std::fs::read_to_string(&path).map_err(|source| Error::Read { path, source })
}

fn damaged(folder: &Path, name: &str, error: serde_json::Error) -> Error {
    let source = io::Error::new(io::ErrorKind::InvalidData, error);
    Error::Read { path: folder.join(name), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(run: &Path, folder: &str, result: &str, trace: &str) {
        let folder = run.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("result.json"), result).unwrap();
        std::fs::write(folder.join("trace.jsonl"), trace).unwrap();
    }

    fn result(target: &str, case: &str, trial: u32) -> String {
        format!(
            "{{\"key\": {{\"target\": \"{target}\", \"case\": \"{case}\", \"trial\": {trial}}}}}"
        )
    }

    #[test]
    fn trials_are_found_with_and_without_a_target_level() {
        let run = tempfile::tempdir().unwrap();
        for number in [10, 2, 1] {
            let name = format!("a/trial-{number}");
            write(
                run.path(),
                &name,
                &result("t", "a", number),
                "{\"request\": 1}\n\n{\"response\": 2}\n",
            );
        }
        write(run.path(), "t/b/trial-1", &result("t", "b", 1), "");
        std::fs::create_dir_all(run.path().join("t/b/trial-2")).unwrap();
        std::fs::write(run.path().join("journal.jsonl"), "").unwrap();
        let traces: Vec<TrialTrace> =
            trial_traces(run.path()).unwrap().collect::<Result<_, _>>().unwrap();
        let keys: Vec<String> = traces
            .iter()
            .map(|trace| format!("{}/{}", trace.key.case.as_str(), trace.key.trial))
            .collect();
        assert_eq!(keys, ["a/1", "a/2", "a/10", "b/1"]);
        assert_eq!(traces[0].entries[1]["response"], 2);
        assert!(traces[3].entries.is_empty());
    }

    #[test]
    fn damaged_files_are_named() {
        for (result, trace, name) in
            [("{", "", "result.json"), (result("t", "a", 1).as_str(), "{", "trace.jsonl")]
        {
            let run = tempfile::tempdir().unwrap();
            write(run.path(), "a/trial-1", result, trace);
            let error = trial_traces(run.path()).unwrap().next().unwrap().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(trial_traces(Path::new("/nowhere")).is_err());
    }
}
