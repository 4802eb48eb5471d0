//! What an earlier process has done already.

use super::continued::failed;
use super::ladder::FIRST;
use super::record::{AskedRecord, Ending, Line, Name, PlanRecord};
use super::spent::Spent;
use crate::error::Error;
use bakeoff_journal::Records;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

/// The plan that a journal begins with; `None` when its process was killed before its first line
/// was whole.
pub(super) fn plan(journal: &Path) -> Result<Option<PlanRecord>, Error> {
    match bakeoff_journal::read::<Line>(journal)?.next().transpose()? {
        None => Ok(None),
        Some(Line::Plan(plan)) => Ok(Some(plan)),
        Some(_) => Err(Error::Journal(bakeoff_journal::Error::Damaged {
            path: journal.to_owned(),
            line: 1,
            reason: "it does not begin with a plan".to_owned(),
        })),
    }
}

/// Whether a file may be a journal of a job: it begins as all of them do, as far as it goes.
///
/// # Errors
///
/// When it is somebody else's file.
pub(super) fn expect_journal(path: &Path) -> Result<(), Error> {
    const BEGINNING: &[u8] = b"{\"plan\":";
    let error = |source| failed("read", path, source);
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(error)?;
    file.take(BEGINNING.len() as u64).read_to_end(&mut start).map_err(error)?;
    match BEGINNING.starts_with(&start) {
        true => Ok(()),
        false => Err(Error::NotAJournal(path.to_owned())),
    }
}

/// What a journal comes to.
#[derive(Debug, Clone)]
pub(super) struct Earlier {
    /// What all requests so far have used.
    pub(super) spent: Spent,
    /// Requests about rows that had been asked about before.
    pub(super) again: u64,
    /// Rows with an answer.
    pub(super) answered: u64,
    /// How often all models have their turn.
    pub(super) rounds: usize,
    /// Every row is in the output.
    pub(super) ending: Option<Ending>,
}

impl Default for Earlier {
    /// Nothing has been done.
    fn default() -> Earlier {
        Earlier { spent: Spent::default(), again: 0, answered: 0, rounds: 1, ending: None }
    }
}

impl Earlier {
    /// Adds up what a journal tells.
    pub(super) fn read(journal: &Path) -> Result<Earlier, Error> {
        let mut earlier = Earlier::default();
        for line in bakeoff_journal::read::<Line>(journal)? {
            match line? {
                Line::Plan(_) => {}
                Line::Asked(asked) => {
                    earlier.spent += asked.spent;
                    earlier.again +=
                        if asked.name.path == FIRST { 0 } else { asked.spent.requests };
                    earlier.answered += asked.answers.len() as u64;
                }
                Line::Finished(ending) => earlier.ending = Some(ending),
                Line::Again => (earlier.rounds, earlier.ending) = (earlier.rounds + 1, None),
            }
        }
        Ok(earlier)
    }
}

/// What came of earlier requests, read from the journal as rows are gone through again.
///
/// Requests are journaled in about the order of their packs: none of a pack is written while a pack
/// waits that is further before it than rows are held in memory. So what has been read and not been
/// asked for yet is never more than that. Only further rounds stand at the end, and until they have
/// been read the text of everything before them is held.
#[derive(Debug)]
pub(super) struct Replay {
    lines: Option<Records<Box<RawValue>>>,
    read: HashMap<Name, Box<RawValue>>,
}

/// A line that tells of a request, and nothing but which.
#[derive(Deserialize)]
struct Named {
    asked: Option<Name>,
}

impl Replay {
    /// Of a job that begins.
    pub(super) fn nothing() -> Replay {
        Replay { lines: None, read: HashMap::new() }
    }

    /// From the first line of a journal.
    pub(super) fn new(journal: &Path) -> Result<Replay, Error> {
        Ok(Replay { lines: Some(bakeoff_journal::read(journal)?), read: HashMap::new() })
    }

    /// What came of a request; `None` when it has not been made. Nothing may have been added to the
    /// journal before that is heard for the first time.
    pub(super) fn take(&mut self, wanted: &Name) -> Result<Option<AskedRecord>, Error> {
        if let Some(line) = self.read.remove(wanted) {
            return Ok(record(&line));
        }
        while let Some(line) = self.lines.as_mut().and_then(Iterator::next) {
            let line = line?;
            let named = serde_json::from_str::<Named>(line.get()).ok();
            if let Some(name) = named.and_then(|named| named.asked) {
                if name == *wanted {
                    return Ok(record(&line));
                }
                self.read.insert(name, line);
            }
        }
        self.lines = None;
        Ok(None)
    }

    /// Whether a request has been looked for that was not made: everything is new from now on.
    pub(super) fn is_over(&self) -> bool {
        self.lines.is_none()
    }
}

/// Every line was read before, when it was added up.
fn record(line: &RawValue) -> Option<AskedRecord> {
    match serde_json::from_str(line.get()) {
        Ok(Line::Asked(record)) => Some(record),
        _ => None,
    }
}
