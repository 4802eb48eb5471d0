//! An output file that an earlier process may have started.
//!
//! A resumed job produces all bytes again from the journal, starting with the first. Bytes that the
//! file already holds are compared, the rest is appended. A file that was cut anywhere is thus
//! completed, a lost file is restored, and an edited file is detected before anything in it is
//! overwritten.

use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 16;

/// Writer that compares with existing contents before it appends.
#[derive(Debug)]
pub(super) struct ResumedOutput {
    path: PathBuf,
    /// Bytes compared or written so far.
    position: u64,
    digest: blake3::Hasher,
    mode: WriteMode,
    /// Reused buffer for the bytes to compare with.
    existing: Vec<u8>,
}

#[derive(Debug)]
enum WriteMode {
    /// The file may hold more bytes of an earlier process.
    Compare(BufReader<File>),
    /// All further bytes are new.
    Append(BufWriter<File>),
}

impl ResumedOutput {
    /// Opens or creates a file at its first byte and keeps its contents.
    pub(super) fn open(path: &Path) -> Result<ResumedOutput, Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(|source| io_error("write", path, source))?;
        let mode = WriteMode::Compare(BufReader::with_capacity(BUFFER_BYTES, file));
        let (digest, existing) = (blake3::Hasher::new(), Vec::new());
        Ok(ResumedOutput { path: path.to_owned(), position: 0, digest, mode, existing })
    }

    /// Writes bytes at the current position.
    ///
    /// # Errors
    ///
    /// [`Error::Edited`] if the file holds different bytes there.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let WriteMode::Compare(file) = &mut self.mode {
            self.existing.clear();
            let read = file.take(bytes.len() as u64).read_to_end(&mut self.existing);
            read.map_err(|source| io_error("read", &self.path, source))?;
            if !bytes.starts_with(&self.existing) {
                return Err(Error::Edited { path: self.path.clone(), at: self.position });
            }
            if self.existing.len() < bytes.len() {
                self.start_appending()?;
            }
        }
        if let WriteMode::Append(file) = &mut self.mode {
            file.write_all(bytes).map_err(|source| io_error("write", &self.path, source))?;
        }
        self.position += bytes.len() as u64;
        self.digest.update(bytes);
        Ok(())
    }

    /// Checks that the file ends at the current position.
    ///
    /// # Errors
    ///
    /// [`Error::Edited`] if it does not.
    pub(super) fn expect_end(&mut self) -> Result<(), Error> {
        let WriteMode::Compare(file) = &mut self.mode else { return Ok(()) };
        let rest = file.fill_buf().map_err(|source| io_error("read", &self.path, source))?;
        match rest.is_empty() {
            true => Ok(()),
            false => Err(Error::Edited { path: self.path.clone(), at: self.position }),
        }
    }

    /// Truncates a partly written entry of a killed process and switches to appending.
    fn start_appending(&mut self) -> Result<(), Error> {
        let WriteMode::Compare(reader) = &mut self.mode else { return Ok(()) };
        let error = |source| io_error("write", &self.path, source);
        let mut file = reader.get_ref().try_clone().map_err(error)?;
        file.set_len(self.position).map_err(error)?;
        file.seek(SeekFrom::Start(self.position)).map_err(error)?;
        self.mode = WriteMode::Append(BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(())
    }

    /// Passes all buffered bytes to the operating system.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        match &mut self.mode {
            WriteMode::Compare(_) => Ok(()),
            WriteMode::Append(file) => {
                file.flush().map_err(|source| io_error("write", &self.path, source))
            }
        }
    }

    /// Syncs the file to disk and returns the digest of its contents.
    pub(super) fn finish(mut self) -> Result<String, Error> {
        self.flush()?;
        let file = match &self.mode {
            WriteMode::Compare(file) => file.get_ref(),
            WriteMode::Append(file) => file.get_ref(),
        };
        file.sync_data().map_err(|source| io_error("write", &self.path, source))?;
        Ok(short_hex(&self.digest))
    }
}

/// Returns the digest of a file; `None` if it cannot be read.
pub(super) fn file_digest(path: &Path) -> Option<String> {
    let mut digest = blake3::Hasher::new();
    digest.update_reader(File::open(path).ok()?).ok()?;
    Some(short_hex(&digest))
}

fn short_hex(digest: &blake3::Hasher) -> String {
    digest.finalize().to_hex().chars().take(16).collect()
}

/// Creates an [`Error::Output`].
pub(super) fn io_error(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Output { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 3] = ["one\n", "", "two and more\n"];

    fn write(path: &Path, lines: &[&str]) -> Result<String, Error> {
        let mut file = ResumedOutput::open(path)?;
        for line in lines {
            file.write(line.as_bytes())?;
        }
        file.expect_end()?;
        file.finish()
    }

    #[test]
    fn file_cut_at_any_byte_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let whole = LINES.concat();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let digest = write(&path, &LINES).unwrap();
            assert_eq!(file_digest(&path), Some(digest));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole, "{cut}");
        }
    }

    #[test]
    fn edited_file_is_reported_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for (edited, position) in
            [("one\ntwo or less\n", 4), ("One", 0), ("one\ntwo and more\n\n", 17)]
        {
            std::fs::write(&path, edited).unwrap();
            match write(&path, &LINES) {
                Err(Error::Edited { at, .. }) => assert_eq!(at, position, "{edited:?}"),
                other => panic!("{edited:?}: {other:?}"),
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), edited);
        }
        // Without `expect_end`, bytes after the last write are not checked.
        let mut file = ResumedOutput::open(&path).unwrap();
        file.write(b"one\n").unwrap();
        file.finish().unwrap();
    }
}
