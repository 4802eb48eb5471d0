//! Reading back.

use crate::Error;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// Opens a journal for reading, one entry at a time.
///
/// A last line without its end is what a killed process leaves behind: it is passed over. Any other
/// line that cannot be read is an error with its number.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Lines<T>, Error> {
    let file = File::open(path).map_err(|source| Error::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })?;
    Ok(Lines {
        path: path.to_owned(),
        reader: BufReader::with_capacity(1 << 16, file),
        buffer: Vec::new(),
        line: 0,
        entries: PhantomData,
    })
}

/// The entries of a journal, in the order they were written.
#[derive(Debug)]
pub struct Lines<T> {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    line: u64,
    entries: PhantomData<T>,
}

impl<T: DeserializeOwned> Iterator for Lines<T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.buffer.clear();
        self.line += 1;
        match self.reader.read_until(b'\n', &mut self.buffer) {
            Err(source) => Some(Err(Error::Io { action: "read", path: self.path.clone(), source })),
            // Either the end, or a line that was being written when the process died.
            Ok(_) if self.buffer.last() != Some(&b'\n') => None,
            Ok(_) => Some(serde_json::from_slice(&self.buffer).map_err(|error| Error::Damaged {
                path: self.path.clone(),
                line: self.line,
                reason: error.to_string(),
            })),
        }
    }
}
