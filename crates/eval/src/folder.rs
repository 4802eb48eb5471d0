//! The folder of a run and its files.

use crate::Error;
use crate::case_files::CaseFiles;
use crate::path_name::safe_name;
use crate::run_file::{Layout, RunFile};
use crate::summary_file::{SummaryFile, TargetFields};
use crate::trial_record::ResultFile;
use bakeoff_core::{Redactor, RunId, Status, Summary, TargetName, TrialKey, TrialResult};
use bakeoff_journal::{
    create_private_folder, create_private_folders, write_atomic, write_atomic_with,
};
use bakeoff_suite::{Artifacts, Case, Suite};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    /// Id of the run, which is the folder's name.
    pub id: RunId,
    /// Path of the folder.
    pub path: PathBuf,
    pub(crate) layout: Layout,
}

/// Plan of a run.
pub const RUN_FILE: &str = "run.json";

/// Fields of the cases of a run, one case per line.
pub const CASES_FILE: &str = "cases.jsonl";

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

impl RunFolder {
    /// Creates a new folder in `parent`. Existing folders are never reused.
    pub(crate) fn create(
        parent: &Path,
        suite: &str,
        now: DateTime<Utc>,
        layout: Layout,
    ) -> Result<RunFolder, Error> {
        let create = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Create { path, source }
        };
        let is_new = !parent.exists();
        create_private_folders(parent).map_err(create(parent))?;
        // Runs do not belong in version control; other contents of an existing folder may.
        if is_new {
            write_atomic(&parent.join(".gitignore"), b"*\n")?;
        }
        let time = now.format("%Y-%m-%dT%H-%M-%SZ");
        loop {
            let id = format!("{time}-{}-{}", safe_name(suite), random_suffix());
            let path = parent.join(&id);
            match create_private_folder(&path) {
                Ok(()) => return Ok(RunFolder { id: id.into(), path, layout }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::Create { path, source }),
            }
        }
    }

    /// Returns the folder of an earlier run.
    pub fn open(path: &Path, run: &RunFile) -> RunFolder {
        RunFolder { id: run.run_id.clone(), path: path.to_owned(), layout: run.layout }
    }

    /// Returns the path of the journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL_FILE)
    }

    /// Returns the path of the log of HTTP requests.
    pub fn http(&self) -> PathBuf {
        self.path.join(HTTP_FILE)
    }

    /// Returns the path of the history of limits.
    pub fn limits(&self) -> PathBuf {
        self.path.join(LIMITS_FILE)
    }

    /// Writes `run.json`.
    pub(crate) fn write_run(&self, run: &RunFile) -> Result<(), Error> {
        write_json(&self.path.join(RUN_FILE), run)
    }

    /// Writes `cases.jsonl`, without secrets.
    pub(crate) fn write_cases(
        &self,
        cases: impl Iterator<Item = Case>,
        redactor: &Redactor,
    ) -> Result<(), Error> {
        write_atomic_with(&self.path.join(CASES_FILE), |writer| {
            for case in cases {
                let line = redactor.scrub(serde_json::to_string(&case.fields)?);
                writeln!(writer, "{line}")?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Removes `summary.json` and `selection.json`, which are outdated once a run is resumed.
    pub(crate) fn remove_summary(&self, suite: &Suite) -> Result<(), Error> {
        let own = [SUMMARY_FILE, SELECTION_FILE].map(|name| self.path.join(name));
        let targets = suite.targets.iter().map(|target| self.target(&target.name));
        for path in own.into_iter().chain(targets.map(|folder| folder.join(SUMMARY_FILE))) {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Write { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes `summary.json`, and for a FastSkill project with several agents one for each agent in its folder. `cases`
    /// has the trials of a project.
    pub(crate) fn write_summary(
        &self,
        summary: &Summary,
        suite: &Suite,
        cases: &CaseFiles,
    ) -> Result<(), Error> {
        if suite.project.is_some() && self.layout == Layout::ByTarget {
            for target in &summary.targets {
                let path = self.target(&target.target);
                let file = TargetFields::of_target(target, suite, &path, cases);
                create_private_folders(&path)
                    .map_err(|source| Error::Write { path: path.clone(), source })?;
                write_json(&path.join(SUMMARY_FILE), &file)?;
            }
        }
        let file = SummaryFile::new(summary, suite, &self.path, cases);
        write_json(&self.path.join(SUMMARY_FILE), &file)
    }

    /// Returns the folder of a target, which is the folder of the run if there is only one.
    fn target(&self, target: &TargetName) -> PathBuf {
        match self.layout {
            Layout::Flat => self.path.clone(),
            Layout::ByTarget => self.path.join(safe_name(target.as_str())),
        }
    }

    /// Returns the folder of a trial.
    pub fn trial(&self, key: &TrialKey) -> PathBuf {
        self.case(key).join(format!("trial-{}", key.trial))
    }

    /// Returns the folder of a trial's case.
    fn case(&self, key: &TrialKey) -> PathBuf {
        self.target(&key.target).join(safe_name(key.case.as_str()))
    }

    /// Returns the path at which a trial's workspace is kept.
    pub(crate) fn workspace(&self, key: &TrialKey) -> PathBuf {
        self.trial(key).join("workspace")
    }

    /// Writes `aggregated.json` of a trial's case.
    pub(crate) fn write_case(&self, key: &TrialKey, case: &impl Serialize) -> Result<(), Error> {
        let folder = self.case(key);
        create_private_folders(&folder)
            .map_err(|source| Error::Write { path: folder.clone(), source })?;
        write_json(&folder.join("aggregated.json"), case)
    }

    /// Writes a trial's files, if `artifacts` asks for them.
    pub(crate) fn write_trial(
        &self,
        artifacts: Artifacts,
        result: &TrialResult,
        trace: &[u8],
    ) -> Result<(), Error> {
        let write = match artifacts {
            Artifacts::All => true,
            Artifacts::Failures => result.status != Status::Passed,
            Artifacts::None => false,
        };
        let folder = self.trial(&result.key);
        if !write {
            // Files of an earlier execution of the trial are outdated.
            return match fs::remove_dir_all(&folder) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::Write { path: folder, source })
                }
                _ => Ok(()),
            };
        }
        create_private_folders(&folder)
            .map_err(|source| Error::Write { path: folder.clone(), source })?;
        // The output of an agent is only a part of its transcript.
        let stdout = result.attempt.transcript.as_ref().unwrap_or(&result.attempt.output);
        write_atomic(&folder.join("stdout.txt"), stdout.as_bytes())?;
        write_atomic(&folder.join("stderr.txt"), result.attempt.stderr.as_bytes())?;
        write_atomic(&folder.join("trace.jsonl"), trace)?;
        write_json(&folder.join("result.json"), &ResultFile::new(result))
    }
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    Ok(write_atomic_with(path, |writer| {
        serde_json::to_writer_pretty(&mut *writer, value)?;
        writer.write_all(b"\n")
    })?)
}

fn random_suffix() -> String {
    (0..4).map(|_| char::from(rand::random_range(b'a'..=b'z'))).collect()
}
