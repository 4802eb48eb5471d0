//! Reading a journal.

use crate::Error;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// Opens a journal and returns an iterator over its records.
///
/// A torn last line, left by a killed process, is ignored. Any other invalid line is an error with its line
/// number.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Records<T>, Error> {
    let file = File::open(path).map_err(|source| Error::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })?;
    Ok(Records {
        path: path.to_owned(),
        reader: BufReader::with_capacity(1 << 16, file),
        buffer: Vec::new(),
        line: 0,
        marker: PhantomData,
    })
}

/// Iterator over the records of a journal, in the order of writing.
#[derive(Debug)]
pub struct Records<T> {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    line: u64,
    marker: PhantomData<T>,
}

impl<T: DeserializeOwned> Iterator for Records<T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.buffer.clear();
        self.line += 1;
        match self.reader.read_until(b'\n', &mut self.buffer) {
            Err(source) => Some(Err(Error::Io { action: "read", path: self.path.clone(), source })),
            // The end of the file, or a torn line.
            Ok(_) if self.buffer.last() != Some(&b'\n') => None,
            Ok(_) => Some(serde_json::from_slice(&self.buffer).map_err(|error| Error::Damaged {
                path: self.path.clone(),
                line: self.line,
                // A record is one line, whose number is above.
                reason: error.to_string().replace(" at line 1 column ", " at column "),
            })),
        }
    }
}
