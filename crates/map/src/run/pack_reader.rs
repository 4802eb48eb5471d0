//! Reading the input as packs.

use super::scan::{self, InputScan, RowDigest};
use crate::error::Error;
use crate::pack::{Pack, PackLimits, Packer};
use crate::row::Row;
use crate::rows::Rows;
use crate::task::Task;
use std::path::{Path, PathBuf};

/// Reader of the scanned rows, one pack at a time.
#[derive(Debug)]
pub(super) struct PackReader {
    path: PathBuf,
    rows: Rows,
    packer: Packer,
    scan: InputScan,
    rows_read: u64,
    digest: RowDigest,
    is_at_end: bool,
}

impl PackReader {
    /// Opens the input at its first row.
    pub(super) fn new(
        input: &Path,
        limits: PackLimits,
        scan: InputScan,
    ) -> Result<PackReader, Error> {
        Ok(PackReader {
            path: input.to_owned(),
            rows: Rows::open(input)?,
            packer: Packer::new(limits),
            scan,
            rows_read: 0,
            digest: RowDigest::default(),
            is_at_end: false,
        })
    }

    /// Returns the next pack.
    ///
    /// # Errors
    ///
    /// Fails if a row is invalid, and at the end if the rows differ from the scanned ones.
    pub(super) fn next(&mut self, task: &Task) -> Result<Option<Pack>, Error> {
        loop {
            let pack = match self.packer.take_oversized() {
                Some(pack) => Some(pack),
                None if self.is_at_end => return Ok(self.packer.finish()),
                None => match self.next_row()? {
                    Some(row) => {
                        let tokens = scan::item_tokens(task, &row);
                        self.packer.push(row, tokens)
                    }
                    None => {
                        self.is_at_end = true;
                        None
                    }
                },
            };
            if pack.is_some() {
                return Ok(pack);
            }
        }
    }

    /// Returns the next row. Rows appended since the scan are ignored.
    fn next_row(&mut self) -> Result<Option<Row>, Error> {
        let row = match self.rows_read < self.scan.rows {
            true => self.rows.next().transpose()?,
            false => None,
        };
        match &row {
            Some(row) => {
                self.rows_read += 1;
                self.digest.add(row);
            }
            None if self.digest.finish() != self.scan.digest => {
                return Err(Error::InputChanged(self.path.clone()));
            }
            None => {}
        }
        Ok(row)
    }
}
