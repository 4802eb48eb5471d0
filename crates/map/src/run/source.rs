//! Packs, made from rows as they are read.

use super::survey;
use crate::error::Error;
use crate::pack::{Pack, PackLimits, Packer};
use crate::rows::Rows;
use crate::task::Task;
use std::path::Path;

/// Packs, one after the other.
#[derive(Debug)]
pub(super) struct Source {
    rows: Rows,
    packer: Packer,
    is_over: bool,
    first_open: u64,
}

impl Source {
    /// The packs of a file, from that one on.
    pub(super) fn new(input: &Path, limits: PackLimits, first_open: u64) -> Result<Source, Error> {
        let rows = Rows::open(input)?;
        Ok(Source { rows, packer: Packer::new(limits), is_over: false, first_open })
    }

    pub(super) fn next(&mut self, task: &Task) -> Result<Option<Pack>, Error> {
        loop {
            let pack = match self.packer.ready() {
                Some(pack) => Some(pack),
                None if self.is_over => match self.packer.finish() {
                    None => return Ok(None),
                    last => last,
                },
                None => match self.rows.next().transpose()? {
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
            if let Some(pack) = pack.filter(|pack| pack.number >= self.first_open) {
                return Ok(Some(pack));
            }
        }
    }
}
