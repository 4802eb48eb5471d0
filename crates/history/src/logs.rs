//! Logs of a run: HTTP requests and limit changes.

use crate::Error;
use bakeoff_core::{HttpEntry, LimitRecord};
use bakeoff_eval::{HTTP_FILE, LIMITS_FILE};
use bakeoff_journal::Records;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// A log of a run.
#[derive(Debug)]
pub struct RunLog<T> {
    /// The entries, read lazily.
    pub entries: LogEntries<T>,
    /// Whether the last line is incomplete: the run was killed or is still running.
    pub is_torn: bool,
}

/// Entries of a log.
#[derive(Debug)]
pub struct LogEntries<T>(Records<T>);

impl<T: DeserializeOwned> Iterator for LogEntries<T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| entry.map_err(Error::Log))
    }
}

/// Opens the log of all HTTP requests of a run.
///
/// # Errors
///
/// When the run has no such log, or it cannot be read.
pub fn http_log(run: &Path) -> Result<RunLog<HttpEntry>, Error> {
    open(run, HTTP_FILE)
}

/// Opens the log of all limit changes of a run.
///
/// # Errors
///
/// When the run has no such log, or it cannot be read.
pub fn limit_log(run: &Path) -> Result<RunLog<LimitRecord>, Error> {
    open(run, LIMITS_FILE)
}

fn open<T: DeserializeOwned>(run: &Path, name: &str) -> Result<RunLog<T>, Error> {
    let path = run.join(name);
    if !path.exists() {
        return Err(Error::Usage {
            message: format!("{} has no {name}", run.display()),
            hint: Some("older versions wrote no such file, or it has been removed".to_owned()),
        });
    }
    let is_torn =
        lacks_final_newline(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let lines = bakeoff_journal::read(&path).map_err(Error::Log)?;
    Ok(RunLog { entries: LogEntries(lines), is_torn })
}

/// Returns whether the last line of a file is incomplete.
pub(crate) fn lacks_final_newline(path: &Path) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
