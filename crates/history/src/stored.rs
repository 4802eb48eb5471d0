//! What earlier runs have left: finding one, and reading its logs.

use crate::Error;
use bakeoff_core::{HttpEntry, LimitRecord};
use bakeoff_eval::{HTTP_FILE, JOURNAL_FILE, LIMITS_FILE};
use bakeoff_journal::Lines;
use bakeoff_suite::suggest;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The folder of a run: a path, the beginning of the name of one in `parent` that no other begins
/// with, or `last`.
///
/// # Errors
///
/// When there is none, or more than one.
pub fn find_run(parent: &Path, wanted: &str) -> Result<PathBuf, Error> {
    let usage = |message, hint| Err(Error::Usage { code: None, message, hint });
    let path = Path::new(wanted);
    if is_run(path) {
        return Ok(path.to_owned());
    }
    let mut runs = crate::list::paths(parent)?;
    if runs.is_empty() {
        let hint = "`bakeoff run` makes one; `--out` names the folder of all runs".to_owned();
        return usage(format!("there is no run in {}", parent.display()), Some(hint));
    }
    if wanted == "last" {
        return Ok(runs.swap_remove(0));
    }
    let name = |path: &PathBuf| -> String {
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    };
    if let Some(exact) = runs.iter().position(|run| name(run) == wanted) {
        return Ok(runs.swap_remove(exact));
    }
    let found: Vec<&PathBuf> = runs.iter().filter(|run| name(run).starts_with(wanted)).collect();
    match found.as_slice() {
        [run] => Ok((*run).clone()),
        [] => {
            let names: Vec<String> = runs.iter().take(10).map(name).collect();
            let hint = suggest(wanted, names.iter().map(String::as_str));
            usage(format!("no run in {} begins with `{wanted}`", parent.display()), hint)
        }
        several => {
            let names: Vec<String> = several.iter().take(5).map(|run| name(run)).collect();
            let hint = format!("such as {}; more letters tell them apart", names.join(", "));
            usage(format!("{} runs begin with `{wanted}`", several.len()), Some(hint))
        }
    }
}

pub(crate) fn is_run(path: &Path) -> bool {
    path.join(JOURNAL_FILE).is_file()
}

/// The lines of a log of a run.
#[derive(Debug)]
pub struct Traced<T> {
    /// The lines, read as they are wanted.
    pub entries: Entries<T>,
    /// The last line has no end: the run was killed, or is going on.
    pub is_torn: bool,
}

/// Lines of a log.
#[derive(Debug)]
pub struct Entries<T>(Lines<T>);

impl<T: DeserializeOwned> Iterator for Entries<T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| entry.map_err(Error::Log))
    }
}

/// Every attempt of every call of a run.
pub fn http_log(run: &Path) -> Result<Traced<HttpEntry>, Error> {
    open(run, HTTP_FILE)
}

/// Every change of the limits of a run.
pub fn limit_log(run: &Path) -> Result<Traced<LimitRecord>, Error> {
    open(run, LIMITS_FILE)
}

fn open<T: DeserializeOwned>(run: &Path, name: &str) -> Result<Traced<T>, Error> {
    let path = run.join(name);
    if !path.exists() {
        return Err(Error::Usage {
            code: None,
            message: format!("{} has no {name}", run.display()),
            hint: Some("runs of older versions kept none, and it may have been removed".to_owned()),
        });
    }
    let is_torn =
        lacks_its_end(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let lines = bakeoff_journal::read(&path).map_err(Error::Log)?;
    Ok(Traced { entries: Entries(lines), is_torn })
}

fn lacks_its_end(path: &Path) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
