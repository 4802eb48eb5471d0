//! Buffer of finished packs that are not written yet, because an earlier pack is unfinished.

use super::batch::{BatchFile, BatchValues};
use super::config::HeldRows;
use super::escalation::RowAnswer;
use super::output::OutputFile;
use super::progress::JobProgress;
use super::record::{FinishRecord, JournalRecord, RequestRecord};
use crate::error::Error;
use crate::pack::Pack;
use bakeoff_journal::Journal;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pack whose rows need no further request.
pub(super) struct FinishedPack {
    pub(super) pack: Arc<Pack>,
    pub(super) answers: Vec<Result<RowAnswer, String>>,
    pub(super) batches: Vec<BatchValues>,
}

/// Writer of all files of a job: journals requests, and writes finished packs in the order of the input.
pub(super) struct OutputBuffer {
    journal: Journal,
    output: OutputFile,
    batch_file: Option<BatchFile>,
    finished: BTreeMap<u64, FinishedPack>,
    /// Number of the pack to write next.
    next: u64,
    /// Rows that are read and not written yet.
    held: HeldRows,
}

impl OutputBuffer {
    /// Creates an empty buffer.
    pub(super) fn new(
        journal: Journal,
        output: OutputFile,
        batch_file: Option<BatchFile>,
    ) -> OutputBuffer {
        let held = HeldRows { rows: 0, bytes: 0 };
        OutputBuffer { journal, output, batch_file, finished: BTreeMap::new(), next: 0, held }
    }

    /// Counts the rows of a started pack as held.
    pub(super) fn reserve(&mut self, pack: &Pack) {
        self.held.rows += pack.rows.len();
        self.held.bytes += pack.bytes();
    }

    /// Returns whether another pack may be held. An empty buffer accepts a pack of any size.
    pub(super) fn has_capacity(&self, max: HeldRows) -> bool {
        let held = self.held;
        held.rows == 0 || (held.rows < max.rows && held.bytes < max.bytes)
    }

    /// Returns whether the next pack can be written.
    pub(super) fn can_write(&self) -> bool {
        self.finished.contains_key(&self.next)
    }

    /// Journals the outcome of a request.
    pub(super) fn journal(&mut self, record: RequestRecord) -> Result<(), Error> {
        Ok(self.journal.push(&JournalRecord::Request(record))?)
    }

    /// Adds a finished pack.
    pub(super) fn insert(&mut self, pack: FinishedPack, progress: &mut JobProgress) {
        progress.settled += pack.pack.rows.len() as u64;
        self.finished.insert(pack.pack.number, pack);
    }

    /// Writes all packs that are next in order. Flushes the journal first, so that every written row is
    /// journaled.
    pub(super) fn write(&mut self, progress: &mut JobProgress) -> Result<(), Error> {
        self.journal.flush()?;
        let first = self.next;
        while let Some(FinishedPack { pack, answers, batches }) = self.finished.remove(&self.next) {
            for (row, answer) in pack.rows.iter().zip(&answers) {
                self.output.write(row, answer)?;
                progress.done += 1;
                progress.errors += u64::from(answer.is_err());
            }
            if let Some(file) = &mut self.batch_file {
                file.write(self.next, batches)?;
            }
            self.held.rows -= pack.rows.len();
            self.held.bytes -= pack.bytes();
            self.next += 1;
        }
        if self.next > first {
            if let Some(batch_file) = &mut self.batch_file {
                batch_file.file.flush()?;
            }
            self.output.file.flush()?;
        }
        Ok(())
    }

    /// Checks that the files of earlier processes end where this process has written to.
    pub(super) fn expect_end(&mut self) -> Result<(), Error> {
        self.output.file.expect_end()?;
        self.batch_file.as_mut().map_or(Ok(()), |batch_file| batch_file.file.expect_end())
    }

    /// Syncs all files to disk and journals the end of a finished job.
    pub(super) fn finish(mut self, progress: &JobProgress) -> Result<(), Error> {
        let is_complete = progress.done == progress.rows;
        if is_complete {
            self.expect_end()?;
        }
        let batches = self.batch_file.map(|batch_file| batch_file.file.finish()).transpose()?;
        let output = self.output.file.finish()?;
        if is_complete {
            let finish = FinishRecord { errors: progress.errors, output, batches };
            self.journal.push(&JournalRecord::Finish(finish))?;
        }
        Ok(self.journal.finish()?)
    }
}
