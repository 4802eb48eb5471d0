//! A file that an earlier process may have begun.
//!
//! Everything is written again from its first byte, from the journal: what is there already is
//! compared with it, and what is not is appended. So a file that was cut anywhere goes on, one that
//! is lost is made again, and one that somebody has changed is noticed before anything is lost.

use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const BUFFER: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Continued {
    path: PathBuf,
    at: u64,
    digest: blake3::Hasher,
    state: State,
    /// What is there instead, of a length that is compared.
    there: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// Behind this place, there may be more from an earlier process.
    Comparing(BufReader<File>),
    /// Everything from here on is new.
    Appending(BufWriter<File>),
}

impl Continued {
    /// Opens a file at its first byte, whatever it holds.
    pub(super) fn open(path: &Path) -> Result<Continued, Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(|source| failed("write", path, source))?;
        let state = State::Comparing(BufReader::with_capacity(BUFFER, file));
        let (digest, there) = (blake3::Hasher::new(), Vec::new());
        Ok(Continued { path: path.to_owned(), at: 0, digest, state, there })
    }

    /// Writes something behind what was written before.
    ///
    /// # Errors
    ///
    /// [`Error::Edited`] when something else is there already.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let State::Comparing(file) = &mut self.state {
            self.there.clear();
            let read = file.take(bytes.len() as u64).read_to_end(&mut self.there);
            read.map_err(|source| failed("read", &self.path, source))?;
            if !bytes.starts_with(&self.there) {
                return Err(Error::Edited { path: self.path.clone(), at: self.at });
            }
            if self.there.len() < bytes.len() {
                self.append_from_here()?;
            }
        }
        if let State::Appending(file) = &mut self.state {
            file.write_all(bytes).map_err(|source| failed("write", &self.path, source))?;
        }
        self.at += bytes.len() as u64;
        self.digest.update(bytes);
        Ok(())
    }

    /// Whether there is nothing behind this place.
    ///
    /// # Errors
    ///
    /// [`Error::Edited`] when there is.
    pub(super) fn expect_end(&mut self) -> Result<(), Error> {
        let State::Comparing(file) = &mut self.state else { return Ok(()) };
        let left = file.fill_buf().map_err(|source| failed("read", &self.path, source))?;
        match left.is_empty() {
            true => Ok(()),
            false => Err(Error::Edited { path: self.path.clone(), at: self.at }),
        }
    }

    /// Cuts off what a killed process has written half.
    fn append_from_here(&mut self) -> Result<(), Error> {
        let State::Comparing(reader) = &mut self.state else { return Ok(()) };
        let error = |source| failed("write", &self.path, source);
        let mut file = reader.get_ref().try_clone().map_err(error)?;
        file.set_len(self.at).map_err(error)?;
        file.seek(SeekFrom::Start(self.at)).map_err(error)?;
        self.state = State::Appending(BufWriter::with_capacity(BUFFER, file));
        Ok(())
    }

    /// Hands everything to the operating system.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        match &mut self.state {
            State::Comparing(_) => Ok(()),
            State::Appending(file) => {
                file.flush().map_err(|source| failed("write", &self.path, source))
            }
        }
    }

    /// Forces everything to disk; a name for all that was written.
    pub(super) fn finish(mut self) -> Result<String, Error> {
        self.flush()?;
        let file = match &self.state {
            State::Comparing(file) => file.get_ref(),
            State::Appending(file) => file.get_ref(),
        };
        file.sync_data().map_err(|source| failed("write", &self.path, source))?;
        Ok(short(&self.digest))
    }
}

/// The name for all that a file holds; `None` when it cannot be read.
pub(super) fn digest_of(path: &Path) -> Option<String> {
    let mut digest = blake3::Hasher::new();
    digest.update_reader(File::open(path).ok()?).ok()?;
    Some(short(&digest))
}

fn short(digest: &blake3::Hasher) -> String {
    digest.finalize().to_hex().chars().take(16).collect()
}

pub(super) fn failed(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Output { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 3] = ["one\n", "", "two and more\n"];

    fn written(path: &Path, lines: &[&str]) -> Result<String, Error> {
        let mut file = Continued::open(path)?;
        for line in lines {
            file.write(line.as_bytes())?;
        }
        file.expect_end()?;
        file.finish()
    }

    #[test]
    fn a_file_that_was_cut_anywhere_goes_on_where_it_should() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let whole = LINES.concat();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let digest = written(&path, &LINES).unwrap();
            assert_eq!(digest_of(&path), Some(digest));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole, "{cut}");
        }
    }

    #[test]
    fn what_somebody_has_changed_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for (edited, place) in
            [("one\ntwo or less\n", 4), ("One", 0), ("one\ntwo and more\n\n", 17)]
        {
            std::fs::write(&path, edited).unwrap();
            match written(&path, &LINES) {
                Err(Error::Edited { at, .. }) => assert_eq!(at, place, "{edited:?}"),
                other => panic!("{edited:?}: {other:?}"),
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), edited);
        }
        // Whoever stops before the end does not know what comes.
        let mut file = Continued::open(&path).unwrap();
        file.write(b"one\n").unwrap();
        file.finish().unwrap();
    }
}
