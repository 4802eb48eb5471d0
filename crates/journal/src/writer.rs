//! Appending.

use crate::Error;
use serde::Serialize;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How much a power cut may cost. A crash of the process costs nothing.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// An append-only file of JSON lines.
///
/// When [`Journal::flush`] has returned, the entries are with the operating system and outlive this
/// process; they are forced to disk every second and at the end.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    pending: Vec<u8>,
    /// Bytes of whole lines that are in the file.
    written: u64,
    /// There may be a part of a line behind them.
    is_torn: bool,
    /// Dropped to tell the syncing thread that the end has come.
    stop: Option<mpsc::Sender<()>>,
    syncing: Option<JoinHandle<std::io::Result<()>>>,
}

impl Journal {
    /// Starts a new journal; the file must not exist yet.
    pub fn create(path: &Path) -> Result<Journal, Error> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|source| Error::Io { action: "create", path: path.to_owned(), source })?;
        Journal::on(file, path)
    }

    /// Goes on with a journal. A last line without its end, which a killed process leaves behind, is
    /// cut off.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another process writes it.
    pub fn reopen(path: &Path) -> Result<Journal, Error> {
        let error = |source| Error::Io { action: "open", path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(error)?;
        Journal::on(file, path)
    }

    /// Goes on with a journal, or starts one where there is none. Whoever comes second finds it
    /// locked, even when both start it.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] while another process writes it.
    pub fn open(path: &Path) -> Result<Journal, Error> {
        let error = |source| Error::Io { action: "open", path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path).map_err(error)?;
        Journal::on(file, path)
    }

    /// Forgets all entries. The file stays, and so does the lock on it.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.pending.clear();
        self.file.set_len(0).map_err(|source| self.error("empty", source))?;
        (self.written, self.is_torn) = (0, false);
        Ok(())
    }

    fn on(file: File, path: &Path) -> Result<Journal, Error> {
        let error = |source| Error::Io { action: "open", path: path.to_owned(), source };
        match file.try_lock() {
            // Where files cannot be locked, nobody can hold one.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: path.to_owned() });
            }
        }
        // A line without its end is what a killed process leaves behind.
        cut_torn_line(&file).map_err(error)?;
        let written = file.metadata().map_err(error)?.len();
        let duplicate = file.try_clone().map_err(error)?;
        let (stop, stopped) = mpsc::channel::<()>();
        let syncing = std::thread::Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || keep_synced(&duplicate, &stopped))
            .map_err(error)?;
        Ok(Journal {
            path: path.to_owned(),
            file,
            pending: Vec::new(),
            written,
            is_torn: false,
            stop: Some(stop),
            syncing: Some(syncing),
        })
    }

    /// Adds an entry to the next [`Journal::flush`].
    pub fn push(&mut self, entry: &impl Serialize) -> Result<(), Error> {
        let length = self.pending.len();
        if let Err(source) = serde_json::to_writer(&mut self.pending, entry) {
            self.pending.truncate(length);
            return Err(Error::Encode { path: self.path.clone(), source });
        }
        self.pending.push(b'\n');
        Ok(())
    }

    /// Hands all pending entries to the operating system in one write.
    ///
    /// What could not be written (the disk may be full) is taken back and tried again with the next
    /// entries: there is never half a line in the middle.
    pub fn flush(&mut self) -> Result<(), Error> {
        // A part of a line that is still there would end up in the middle.
        if self.is_torn && self.file.set_len(self.written).is_err() {
            let source = std::io::Error::other("an earlier entry could not be written");
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

    /// Writes what is pending, forces everything to disk and closes the file.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.close()
    }

    /// Waits for the thread that holds the file, and with it the lock, as well.
    fn close(&mut self) -> Result<(), Error> {
        self.stop = None;
        match self.syncing.take().map(JoinHandle::join) {
            Some(Ok(Err(source))) => Err(self.error("sync", source)),
            _ => Ok(()),
        }
    }

    fn error(&self, action: &'static str, source: std::io::Error) -> Error {
        Error::Io { action, path: self.path.clone(), source }
    }
}

impl Drop for Journal {
    /// Whoever comes next finds it unlocked.
    fn drop(&mut self) {
        // Whoever wants to know whether everything is on disk calls `finish`.
        let _ = self.close();
    }
}

/// Cuts off a last line without its end, which a killed process leaves behind.
pub fn cut_torn_line(file: &File) -> std::io::Result<()> {
    file.set_len(end_of_last_line(file)?)
}

/// How long a file is without the line that was being written when its process died.
fn end_of_last_line(file: &File) -> std::io::Result<u64> {
    use std::os::unix::fs::FileExt;
    const STEP: u64 = 1 << 16;
    let mut end = file.metadata()?.len();
    let mut buffer = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(STEP);
        buffer.resize((end - start) as usize, 0);
        file.read_exact_at(&mut buffer, start)?;
        if let Some(newline) = buffer.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Syncs every interval and once at the end. A thread of its own, because a busy disk can take
/// longer than a trial.
fn keep_synced(file: &File, stopped: &mpsc::Receiver<()>) -> std::io::Result<()> {
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SYNC_INTERVAL) {
        file.sync_data()?;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_leaves_no_half_line_in_the_middle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        journal.push(&1).unwrap();
        journal.flush().unwrap();
        // The disk is full: half of the next line gets out, and nothing can be taken back.
        journal.push(&"second").unwrap();
        (&journal.file).write_all(b"\"sec").unwrap();
        let good = std::mem::replace(&mut journal.file, File::open(&path).unwrap());
        journal.flush().unwrap_err();
        journal.push(&3).unwrap();
        journal.flush().unwrap_err();
        // There is room again.
        journal.file = good;
        journal.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n\"second\"\n3\n");
    }
}
