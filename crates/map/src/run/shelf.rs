//! Packs that are finished wait here until it is their turn to be written.

use super::facts::{Fact, Facts};
use super::ladder::Answer;
use super::output::Output;
use super::record::{AskedRecord, Ending, Line};
use super::{HeldRows, Progress};
use crate::error::Error;
use crate::pack::Pack;
use bakeoff_journal::Journal;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pack whose rows can be written when it is their turn.
pub(super) struct Done {
    pub(super) pack: Arc<Pack>,
    pub(super) answers: Vec<Result<Answer, String>>,
    pub(super) facts: Vec<Fact>,
}

/// Everything that is written.
pub(super) struct Shelf {
    journal: Journal,
    output: Output,
    facts: Option<Facts>,
    done: BTreeMap<u64, Done>,
    /// The pack whose rows are written next.
    next: u64,
    /// Rows that have been read and not been written.
    held: HeldRows,
}

impl Shelf {
    pub(super) fn new(journal: Journal, output: Output, facts: Option<Facts>) -> Shelf {
        let held = HeldRows { rows: 0, bytes: 0 };
        Shelf { journal, output, facts, done: BTreeMap::new(), next: 0, held }
    }

    /// A place is kept for a pack.
    pub(super) fn reserve(&mut self, pack: &Pack) {
        self.held.rows += pack.rows.len();
        self.held.bytes += pack.bytes();
    }

    /// Whether there are places left; with nothing held, there is always one.
    pub(super) fn has_room(&self, most: HeldRows) -> bool {
        let held = self.held;
        held.rows == 0 || (held.rows < most.rows && held.bytes < most.bytes)
    }

    /// Whether there are rows whose turn it is.
    pub(super) fn is_moving(&self) -> bool {
        self.done.contains_key(&self.next)
    }

    /// Journals what came of a request.
    pub(super) fn journal(&mut self, record: AskedRecord) -> Result<(), Error> {
        Ok(self.journal.push(&Line::Asked(record))?)
    }

    /// Puts a pack into its place.
    pub(super) fn put(&mut self, done: Done, progress: &mut Progress) {
        progress.settled += done.pack.rows.len() as u64;
        self.done.insert(done.pack.number, done);
    }

    /// Writes the rows whose turn it is. The journal goes first: what is in the output is in it.
    pub(super) fn write(&mut self, progress: &mut Progress) -> Result<(), Error> {
        self.journal.flush()?;
        let before = self.next;
        while let Some(Done { pack, answers, facts }) = self.done.remove(&self.next) {
            for (row, answer) in pack.rows.iter().zip(&answers) {
                self.output.write(row, answer)?;
                progress.done += 1;
                progress.errors += u64::from(answer.is_err());
            }
            if let Some(file) = &mut self.facts {
                file.write(self.next, facts)?;
            }
            self.held.rows -= pack.rows.len();
            self.held.bytes -= pack.bytes();
            self.next += 1;
        }
        if self.next > before {
            if let Some(facts) = &mut self.facts {
                facts.file.flush()?;
            }
            self.output.file.flush()?;
        }
        Ok(())
    }

    /// Whether earlier processes have written no more than this one has until now.
    pub(super) fn expect_end(&mut self) -> Result<(), Error> {
        self.output.file.expect_end()?;
        self.facts.as_mut().map_or(Ok(()), |facts| facts.file.expect_end())
    }

    /// Forces everything to disk.
    pub(super) fn finish(mut self, progress: &Progress) -> Result<(), Error> {
        let is_whole = progress.done == progress.rows;
        if is_whole {
            self.expect_end()?;
        }
        let facts = self.facts.map(|facts| facts.file.finish()).transpose()?;
        let output = self.output.file.finish()?;
        if is_whole {
            let ending = Ending { errors: progress.errors, output, facts };
            self.journal.push(&Line::Finished(ending))?;
        }
        Ok(self.journal.finish()?)
    }
}
