//! Logs that may be incomplete.

use crate::Error;
use bakeoff_journal::private_file_options;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Size of the write buffer. A call waits for a write only when it is full, once in a few hundred calls.
const BUFFER_BYTES: usize = 64 * 1024;

/// A best-effort log of JSON lines: when it cannot be written, the run continues, and the first error is
/// kept for a warning.
#[derive(Debug)]
pub(crate) struct BestEffortLog {
    path: PathBuf,
    writer: Mutex<LogWriter>,
}

#[derive(Debug)]
struct LogWriter {
    file: BufWriter<File>,
    error: Option<std::io::Error>,
}

impl BestEffortLog {
    /// Creates a file, or opens an existing one for appending.
    pub(crate) fn open(path: &Path) -> Result<BestEffortLog, Error> {
        let open = || {
            let mut options = private_file_options();
            let file = options.read(true).append(true).create(true).open(path)?;
            bakeoff_journal::cut_torn_line(&file)?;
            Ok(file)
        };
        let file = open().map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(BestEffortLog {
            path: path.to_owned(),
            writer: Mutex::new(LogWriter { file, error: None }),
        })
    }

    /// Appends an entry.
    pub(crate) fn push(&self, entry: &impl Serialize) {
        // Lines are written as a whole, so that only the last one can be torn.
        if let Ok(mut line) = serde_json::to_vec(entry) {
            line.push(b'\n');
            self.write(|file| file.write_all(&line));
        }
    }

    /// Writes buffered lines.
    pub(crate) fn flush(&self) {
        self.write(Write::flush);
    }

    fn write(&self, act: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.error.is_none()
            && let Err(error) = act(&mut writer.file)
        {
            writer.error = Some(error);
        }
    }

    /// Returns a message about the first error.
    pub(crate) fn take_error(&self) -> Option<String> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let error = writer.error.take()?;
        Some(format!("{} is incomplete: {error}", self.path.display()))
    }
}
