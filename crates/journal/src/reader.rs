//! Reading a journal.

use crate::Error;
use crate::checksum::{self, Check};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// Opens a journal and returns an iterator over its records.
///
/// A torn last line, left by a killed process, is ignored. Any other damaged line is an error with its line number,
/// after which the iterator continues with the next line.
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
        has_checksums: false,
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
    /// Whether an earlier record has a checksum: then all later ones must have one.
    has_checksums: bool,
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
            Ok(_) => Some(self.parse().map_err(|reason| Error::Damaged {
                path: self.path.clone(),
                line: self.line,
                reason,
            })),
        }
    }
}

impl<T: DeserializeOwned> Records<T> {
    /// Parses the line in the buffer. The error is a message for users.
    fn parse(&mut self) -> Result<T, String> {
        self.buffer.pop();
        match checksum::take(&mut self.buffer) {
            Check::Valid => self.has_checksums = true,
            Check::Invalid => return Err("wrong checksum".to_owned()),
            Check::Absent if self.has_checksums && self.buffer.starts_with(b"{") => {
                return Err("no checksum".to_owned());
            }
            Check::Absent => {}
        }
        // A record is one line, whose number is in the error.
        serde_json::from_slice(&self.buffer)
            .map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))
    }
}
