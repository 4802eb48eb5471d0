//! Appending to a journal.

use crate::private::private_file_options;
use crate::{Error, checksum};
use serde::Serialize;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval between syncs: the maximum time span lost by a power failure. A crash of the process loses
/// nothing.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// An append-only file of JSON lines.
///
/// Once [`Journal::flush`] has returned, the operating system has the records, and they outlive this process.
/// They are synced to disk every second and at the end.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    pending: Vec<u8>,
    /// Length of the complete lines in the file, in bytes.
    written: u64,
    /// Whether a partial line may follow them.
    is_torn: bool,
    /// Dropped to stop the sync thread.
    stop: Option<mpsc::Sender<()>>,
    sync_thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Journal {
    /// Creates a journal. The file must not exist.
    pub fn create(path: &Path) -> Result<Journal, Error> {
        let file = private_file_options()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|source| Error::Io { action: "create", path: path.to_owned(), source })?;
        Journal::lock(file, path)
    }

    /// Opens an existing journal for appending. A torn last line, left by a killed process, is removed.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another process has it open.
    pub fn reopen(path: &Path) -> Result<Journal, Error> {
        let error = |source| Error::Io { action: "open", path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(error)?;
        Journal::lock(file, path)
    }

    /// Opens a journal for appending, or creates it. If two processes create it at the same time, one of them
    /// fails with [`Error::Locked`].
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another process has it open.
    pub fn open(path: &Path) -> Result<Journal, Error> {
        let error = |source| Error::Io { action: "open", path: path.to_owned(), source };
        let mut options = private_file_options();
        let file = options.read(true).append(true).create(true).open(path).map_err(error)?;
        Journal::lock(file, path)
    }

    /// Removes all records. The file and the lock on it remain.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.pending.clear();
        self.file.set_len(0).map_err(|source| self.error("empty", source))?;
        (self.written, self.is_torn) = (0, false);
        Ok(())
    }

    fn lock(file: File, path: &Path) -> Result<Journal, Error> {
        let error = |source| Error::Io { action: "open", path: path.to_owned(), source };
        match file.try_lock() {
            // On file systems without locks, no process can hold one.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: path.to_owned() });
            }
        }
        cut_torn_line(&file).map_err(error)?;
        let written = file.metadata().map_err(error)?.len();
        let duplicate = file.try_clone().map_err(error)?;
        let (stop, stop_signal) = mpsc::channel::<()>();
        let sync_thread = std::thread::Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || sync_periodically(&duplicate, &stop_signal))
            .map_err(error)?;
        Ok(Journal {
            path: path.to_owned(),
            file,
            pending: Vec::new(),
            written,
            is_torn: false,
            stop: Some(stop),
            sync_thread: Some(sync_thread),
        })
    }

    /// Adds a record to the next [`Journal::flush`].
    pub fn push(&mut self, record: &impl Serialize) -> Result<(), Error> {
        let length = self.pending.len();
        if let Err(source) = serde_json::to_writer(&mut self.pending, record) {
            self.pending.truncate(length);
            return Err(Error::Encode { path: self.path.clone(), source });
        }
        checksum::add(&mut self.pending, length);
        self.pending.push(b'\n');
        Ok(())
    }

    /// Passes all pending records to the operating system in one write.
    ///
    /// If the write fails, for example because the disk is full, the partial data is removed, and the records
    /// are written with the next flush. No partial line ever precedes another record.
    pub fn flush(&mut self) -> Result<(), Error> {
        // A partial line that could not be removed earlier must not precede new records.
        if self.is_torn && self.file.set_len(self.written).is_err() {
            let source = std::io::Error::other("a partly written record could not be removed");
            return Err(self.error("append to", source));
        }
        self.is_torn = false;
        if let Err(source) = self.file.write_all(&self.pending) {
            self.is_torn = self.file.set_len(self.written).is_err();
            return Err(self.error("append to", source));
        }
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Writes pending records, syncs the file to disk and closes it.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.close()
    }

    /// Stops the sync thread, which shares the file and its lock, and waits for it.
    fn close(&mut self) -> Result<(), Error> {
        self.stop = None;
        match self.sync_thread.take().map(JoinHandle::join) {
            Some(Ok(Err(source))) => Err(self.error("sync", source)),
            _ => Ok(()),
        }
    }

    fn error(&self, action: &'static str, source: std::io::Error) -> Error {
        Error::Io { action, path: self.path.clone(), source }
    }
}

impl Drop for Journal {
    /// Closes the file, so that it is unlocked afterwards.
    fn drop(&mut self) {
        // Callers that need the result of the last sync use `finish`.
        let _ = self.close();
    }
}

/// Returns whether a process has the journal open.
pub fn is_open(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // Shared, so that two calls at the same time do not disturb each other. Closing the file ends the lock.
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Removes a torn last line, left by a killed process.
pub fn cut_torn_line(file: &File) -> std::io::Result<()> {
    file.set_len(complete_length(file)?)
}

/// Returns the length of a file without a torn last line.
fn complete_length(file: &File) -> std::io::Result<u64> {
    use std::os::unix::fs::FileExt;
    const CHUNK_BYTES: u64 = 1 << 16;
    let mut end = file.metadata()?.len();
    let mut buffer = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        buffer.resize((end - start) as usize, 0);
        file.read_exact_at(&mut buffer, start)?;
        if let Some(newline) = buffer.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Syncs a file at every interval and once at the end. Runs in its own thread, because a sync on a busy disk
/// can block for longer than a trial takes.
fn sync_periodically(file: &File, stop_signal: &mpsc::Receiver<()>) -> std::io::Result<()> {
    while let Err(RecvTimeoutError::Timeout) = stop_signal.recv_timeout(SYNC_INTERVAL) {
        file.sync_data()?;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_write_leaves_no_partial_line_before_later_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        journal.push(&1).unwrap();
        journal.flush().unwrap();
        // Simulates a full disk: part of the next line is written and cannot be removed.
        journal.push(&"second").unwrap();
        (&journal.file).write_all(b"\"sec").unwrap();
        let writable = std::mem::replace(&mut journal.file, File::open(&path).unwrap());
        journal.flush().unwrap_err();
        journal.push(&3).unwrap();
        journal.flush().unwrap_err();
        // The disk has space again.
        journal.file = writable;
        journal.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n\"second\"\n3\n");
    }
}
