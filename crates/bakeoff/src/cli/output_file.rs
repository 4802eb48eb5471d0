//! Validation of output files before the first call: results that cost money must not be lost to a wrong path.

use crate::arguments::ExportArguments;
use crate::error::UsageError;
use bakeoff_journal::{STANDARD_OUTPUT, follow_links};
use bakeoff_suite::Suite;
use std::path::{Path, PathBuf};

/// Files of a run that are read again.
const RUN_FILES: [&str; 7] = [
    "run.json",
    "journal.jsonl",
    "summary.json",
    "selection.json",
    "cases.jsonl",
    "limits.jsonl",
    "http.jsonl",
];

/// Checks that a file can be written later, and is none that a command reads: one of `inputs`, the keys of a suite or the
/// data of a run. Pipes and devices are not opened, because that may wait for a reader.
pub(crate) fn check_writable(path: &Path, inputs: &[&Path]) -> Result<(), String> {
    if path == Path::new(STANDARD_OUTPUT) {
        return Ok(());
    }
    let shown = path.display();
    let path = follow_links(path).map_err(|error| format!("cannot write {shown}: {error}"))?;
    if path.is_dir() {
        return Err(format!("{shown} is a folder"));
    }
    let existing = path.canonicalize().ok();
    if existing.is_some() && inputs.iter().any(|input| input.canonicalize().ok() == existing) {
        return Err(format!("{shown} is a file that this command reads"));
    }
    let name = path.file_name().unwrap_or_default();
    if name == ".env" {
        return Err(format!("{shown} is the file with the keys of a suite"));
    }
    if RUN_FILES.iter().any(|file| name == *file) && path.with_file_name("run.json").exists() {
        return Err(format!("{shown} is part of a run"));
    }
    if path.exists() && !path.is_file() {
        return Ok(());
    }
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // A regular file is replaced. Permissions on its folder can only be tested by creating a file.
    let probe = folder.join(format!(".bakeoff-{}.tmp", std::process::id()));
    match std::fs::File::create_new(&probe) {
        Ok(_) => {
            let _ = std::fs::remove_file(&probe);
            Ok(())
        }
        Err(_) if !folder.is_dir() => Err(format!("no folder {}", folder.display())),
        Err(error) => Err(format!("cannot write {shown}: {error}")),
    }
}

impl ExportArguments {
    /// Fails if one of the files cannot be written, would overwrite a file that is read, or is named twice.
    pub(crate) fn check(&self, suite: Option<&Suite>) -> Result<(), UsageError> {
        let inputs = suite.map(|suite| vec![suite.path.as_path(), suite.cases.path()]);
        let inputs = inputs.unwrap_or_default();
        let files = [
            ("--junit", &self.junit),
            ("--markdown", &self.markdown),
            ("--csv", &self.csv),
            ("--jsonl", &self.jsonl),
        ];
        let files = files.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
        let mut seen: Vec<(&str, &PathBuf)> = Vec::new();
        for (flag, path) in files {
            if let Some((other, _)) = seen.iter().find(|(_, known)| *known == path) {
                let message = format!("{other} and {flag} have the same file {}", path.display());
                return Err(UsageError::new(message).hint("use another file"));
            }
            seen.push((flag, path));
            check_writable(path, &inputs).map_err(|message| {
                let hint = format!("`{flag}` needs the path of a file in a writable folder");
                UsageError::new(message).hint(hint)
            })?;
        }
        Ok(())
    }
}
