//! The folder of a run: its name, its files, and names that are safe for paths.

use crate::Error;
use crate::runfile::{Layout, RunFile};
use crate::summaryfile::SummaryFile;
use bakeoff_core::{RunId, Status, Summary, TargetName, TrialKey, TrialResult};
use bakeoff_journal::{write_atomic, write_atomic_with};
use bakeoff_suite::{Artifacts, Suite};
use jiff::Timestamp;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    /// Its name, which is the run's id.
    pub id: RunId,
    /// Where it is.
    pub path: PathBuf,
    pub(crate) layout: Layout,
}

/// Plan of a run.
pub const RUN_FILE: &str = "run.json";

/// Journal of a run.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// Summary of a finished run.
pub const SUMMARY_FILE: &str = "summary.json";

/// Log with one line per HTTP request.
pub const HTTP_FILE: &str = "http.jsonl";

/// Log with one line per change of a pool's limit.
pub const LIMITS_FILE: &str = "limits.jsonl";

/// Result of a search.
pub(crate) const SELECTION_FILE: &str = "selection.json";

/// Names that a case or target cannot take.
const RESERVED: [&str; 7] =
    [RUN_FILE, JOURNAL_FILE, LIMITS_FILE, HTTP_FILE, SUMMARY_FILE, SELECTION_FILE, "work"];

impl RunFolder {
    /// Makes a new folder in `parent`; one that exists is never used again.
    pub(crate) fn create(
        parent: &Path,
        suite: &str,
        now: Timestamp,
        layout: Layout,
    ) -> Result<RunFolder, Error> {
        let create = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Create { path, source }
        };
        let is_ours = !parent.exists();
        fs::create_dir_all(parent).map_err(create(parent))?;
        // Results are for people, not for version control; what else is in a folder may be.
        if is_ours {
            write_atomic(&parent.join(".gitignore"), b"*\n")?;
        }
        let time = now.strftime("%Y-%m-%dT%H-%M-%SZ");
        loop {
            let id = format!("{time}-{}-{}", safe_name(suite), four_letters());
            let path = parent.join(&id);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RunFolder { id: id.into(), path, layout }),
                Err(taken) if taken.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Create { path, source }),
            }
        }
    }

    /// The folder of an earlier run.
    pub(crate) fn open(path: &Path, run: &RunFile) -> RunFolder {
        RunFolder { id: run.run_id.clone(), path: path.to_owned(), layout: run.layout }
    }

    /// The journal's path.
    pub fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }

    /// The path of the log of HTTP requests.
    pub fn http(&self) -> PathBuf {
        self.path.join(HTTP_FILE)
    }

    /// The path of the history of limits.
    pub fn limits(&self) -> PathBuf {
        self.path.join(LIMITS_FILE)
    }

    /// Writes `run.json`.
    pub(crate) fn write_run(&self, run: &RunFile) -> Result<(), Error> {
        write_json(&self.path.join(RUN_FILE), run)
    }

    /// Removes `summary.json` and `selection.json`, which are no longer true once a run goes on.
    pub(crate) fn remove_summary(&self) -> Result<(), Error> {
        for name in [SUMMARY_FILE, SELECTION_FILE] {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Write { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes `summary.json`.
    pub(crate) fn write_summary(&self, summary: &Summary, suite: &Suite) -> Result<(), Error> {
        write_json(&self.path.join(SUMMARY_FILE), &SummaryFile::new(summary, suite, &self.path))
    }

    /// The folder of one trial.
    pub fn trial(&self, key: &TrialKey) -> PathBuf {
        self.case(key).join(format!("trial-{}", key.trial))
    }

    /// The folder of a trial's case.
    fn case(&self, key: &TrialKey) -> PathBuf {
        let parent = match self.layout {
            Layout::Flat => self.path.clone(),
            Layout::ByTarget => self.path.join(safe_name(key.target.as_str())),
        };
        parent.join(safe_name(key.case.as_str()))
    }

    /// Where a trial's workspace is kept, if it is.
    pub(crate) fn workspace(&self, key: &TrialKey) -> PathBuf {
        self.trial(key).join("workspace")
    }

    /// Writes what is said of a trial's case.
    pub(crate) fn write_case(&self, key: &TrialKey, case: &impl Serialize) -> Result<(), Error> {
        let folder = self.case(key);
        fs::create_dir_all(&folder)
            .map_err(|source| Error::Write { path: folder.clone(), source })?;
        write_json(&folder.join("aggregated.json"), case)
    }

    /// Where programs run; removed at the end.
    pub(crate) fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// Where programs of a target run that stay from trial to trial.
    pub(crate) fn worker(&self, target: &TargetName) -> PathBuf {
        self.work().join(format!("worker-{}", safe_name(target.as_str())))
    }

    /// Writes a trial's files.
    pub(crate) fn write_trial(
        &self,
        wanted: Artifacts,
        result: &TrialResult,
        trace: &[u8],
    ) -> Result<(), Error> {
        let write = match wanted {
            Artifacts::All => true,
            Artifacts::Failures => result.status != Status::Passed,
            Artifacts::None => false,
        };
        let folder = self.trial(&result.key);
        if !write {
            // What an earlier attempt of the same trial left would be untrue.
            return match fs::remove_dir_all(&folder) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::Write { path: folder, source })
                }
                _ => Ok(()),
            };
        }
        fs::create_dir_all(&folder)
            .map_err(|source| Error::Write { path: folder.clone(), source })?;
        // Of an agent's output, the answer is only a part.
        let stdout = result.attempt.transcript.as_ref().unwrap_or(&result.attempt.output);
        write_atomic(&folder.join("stdout.txt"), stdout.as_bytes())?;
        write_atomic(&folder.join("stderr.txt"), result.attempt.stderr.as_bytes())?;
        write_atomic(&folder.join("trace.jsonl"), trace)?;
        write_json(&folder.join("result.json"), result)
    }
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    Ok(write_atomic_with(path, |writer| {
        serde_json::to_writer_pretty(&mut *writer, value)?;
        writer.write_all(b"\n")
    })?)
}

/// A name for a path: the text itself when it is plainly safe, else what can be kept of it with a
/// hash of all of it, so that no two texts share a name on any file system.
pub(crate) fn safe_name(text: &str) -> String {
    const MOST: usize = 80;
    let plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let is_device = |name: &str| {
        let stem = name.split('.').next().unwrap_or_default();
        matches!(stem, "con" | "prn" | "aux" | "nul")
            || (stem.len() == 4
                && (stem.starts_with("com") || stem.starts_with("lpt"))
                && stem.ends_with(|c: char| c.is_ascii_digit()))
    };
    let safe = !text.is_empty()
        && text.len() <= MOST
        && text.chars().all(plain)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !text.ends_with('.')
        && !RESERVED.contains(&text)
        && !is_device(text)
        && !looks_hashed(text);
    if safe {
        return text.to_owned();
    }
    let kept: String = text
        .chars()
        .take(MOST / 2)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .collect();
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{}-{}", kept.trim_start_matches(['_', '-']), &hash[..12])
        .trim_start_matches('-')
        .to_owned()
}

/// Whether a text ends like a name that has a hash: it could be that of another text.
fn looks_hashed(text: &str) -> bool {
    let end = text.rsplit('-').next().unwrap_or_default();
    end.len() == 12 && end.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn four_letters() -> String {
    (0..4).map(|_| char::from(rand::random_range(b'a'..=b'z'))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_never_escape_and_never_collide() {
        let long = "x".repeat(300);
        let longer = "x".repeat(301);
        let hashed = safe_name("a/b");
        let ids = [
            "fr",
            "FR",
            "Fr",
            "a/b",
            "a\\b",
            "a_b",
            "a b",
            "..",
            ".",
            "",
            "../../etc/x",
            "CON",
            "con",
            "nul.txt",
            "summary.json",
            "é",
            "e",
            "trial-1",
            "-x",
            "x.",
            &hashed,
            &long,
            &longer,
        ];
        let names: Vec<String> = ids.iter().map(|id| safe_name(id)).collect();
        let folded: HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(folded.len(), ids.len(), "{names:?}");
        for name in &names {
            assert!(name.len() <= 80 && !name.is_empty(), "{name}");
            assert!(!name.contains(['/', '\\', ' ']) && !name.starts_with('.'), "{name}");
        }
        assert_eq!((names[0].as_str(), names[5].as_str()), ("fr", "a_b"));
    }
}
