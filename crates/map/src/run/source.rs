//! Packs, made from rows as they are read.

use super::survey::{self, Digest, Survey};
use crate::error::Error;
use crate::pack::{Pack, PackLimits, Packer};
use crate::row::Row;
use crate::rows::Rows;
use crate::task::Task;
use std::path::{Path, PathBuf};

/// Packs, one after the other, from the same rows that were looked at before.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    rows: Rows,
    packer: Packer,
    expected: Survey,
    read: u64,
    digest: Digest,
    is_over: bool,
}

impl Source {
    pub(super) fn new(input: &Path, limits: PackLimits, expected: Survey) -> Result<Source, Error> {
        Ok(Source {
            path: input.to_owned(),
            rows: Rows::open(input)?,
            packer: Packer::new(limits),
            expected,
            read: 0,
            digest: Digest::default(),
            is_over: false,
        })
    }

    /// # Errors
    ///
    /// When a row cannot be read, and at the end when rows are not what they were.
    pub(super) fn next(&mut self, task: &Task) -> Result<Option<Pack>, Error> {
        loop {
            let pack = match self.packer.ready() {
                Some(pack) => Some(pack),
                None if self.is_over => return Ok(self.packer.finish()),
                None => match self.row()? {
                    Some(row) => {
                        let tokens = survey::tokens(task, &row);
                        self.packer.push(row, tokens)
                    }
                    None => {
                        self.is_over = true;
                        None
                    }
                },
            };
            if pack.is_some() {
                return Ok(pack);
            }
        }
    }

    /// The next row. Those that were added since the first look are left alone.
    fn row(&mut self) -> Result<Option<Row>, Error> {
        let row = match self.read < self.expected.rows {
            true => self.rows.next().transpose()?,
            false => None,
        };
        match &row {
            Some(row) => {
                self.read += 1;
                self.digest.add(row);
            }
            None if self.digest.finish() != self.expected.digest => {
                return Err(Error::InputChanged(self.path.clone()));
            }
            None => {}
        }
        Ok(row)
    }
}
