//! Validation of output files before the first call: results that cost money must not be lost to a wrong path.

use crate::arguments::ExportArguments;
use crate::error::UsageError;
use std::path::{Path, PathBuf};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// In place, through links.
    InPlace,
    /// By renaming a new file, which replaces links and read-only files.
    Replace,
}

/// Checks that a file can be written later, and is not the suite.
pub(crate) fn check_writable(
    path: &Path,
    suite: Option<&Path>,
    mode: WriteMode,
) -> Result<(), String> {
    let shown = path.display();
    let (path, is_new) = match path.canonicalize() {
        Ok(path) => (path, false),
        Err(_) => (path.to_owned(), true),
    };
    if path.is_dir() {
        return Err(format!("{shown} is a folder"));
    }
    if suite.is_some_and(|suite| suite.canonicalize().is_ok_and(|suite| suite == path)) {
        return Err(format!("{shown} is the suite itself"));
    }
    if !is_new && mode == WriteMode::InPlace {
        let opened = std::fs::File::options().append(true).open(&path);
        return opened.map(drop).map_err(|error| format!("cannot write {shown}: {error}"));
    }
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let probe = match is_new {
        true => path.clone(),
        false => folder.join(format!(".bakeoff-{}.tmp", std::process::id())),
    };
    // Permissions can only be tested by creating a file.
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
    /// Fails if one of the files cannot be written, would overwrite the suite, or is named twice.
    pub(crate) fn check(&self, suite: Option<&Path>) -> Result<(), UsageError> {
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
            check_writable(path, suite, WriteMode::Replace).map_err(|message| {
                let hint = format!("`{flag}` needs the path of a file in a writable folder");
                UsageError::new(message).hint(hint)
            })?;
        }
        Ok(())
    }
}
