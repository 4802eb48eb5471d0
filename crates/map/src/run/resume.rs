//! Reading the journal of an earlier process.

use super::escalation::FIRST_PATH;
use super::record::{FinishRecord, JournalRecord, PlanRecord, RequestKey, RequestRecord};
use super::resumed_output::io_error;
use super::usage::RequestUsage;
use crate::error::Error;
use bakeoff_journal::Records;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

/// Reads the plan at the start of a journal; `None` if the process was killed before it was written.
pub(super) fn read_plan(journal: &Path) -> Result<Option<PlanRecord>, Error> {
    match bakeoff_journal::read::<JournalRecord>(journal)?.next().transpose()? {
        None => Ok(None),
        Some(JournalRecord::Plan(plan)) => Ok(Some(plan)),
        Some(_) => Err(Error::Journal(bakeoff_journal::Error::Damaged {
            path: journal.to_owned(),
            line: 1,
            reason: "the first record is not a plan".to_owned(),
        })),
    }
}

/// Checks that a file starts like a journal of a job, as far as it goes.
///
/// # Errors
///
/// [`Error::NotAJournal`] if it does not.
pub(super) fn check_journal(path: &Path) -> Result<(), Error> {
    const PREFIX: &[u8] = b"{\"plan\":";
    let error = |source| io_error("read", path, source);
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(error)?;
    file.take(PREFIX.len() as u64).read_to_end(&mut start).map_err(error)?;
    match PREFIX.starts_with(&start) {
        true => Ok(()),
        false => Err(Error::NotAJournal(path.to_owned())),
    }
}

/// Totals of a journal.
#[derive(Debug, Clone)]
pub(super) struct JournalSummary {
    /// Usage of all requests.
    pub(super) usage: RequestUsage,
    /// Requests for rows that had been requested before.
    pub(super) reasks: u64,
    /// Number of rows with an answer.
    pub(super) answered: u64,
    /// Number of rounds through all models.
    pub(super) rounds: usize,
    /// End of the last round, if it is finished.
    pub(super) finish: Option<FinishRecord>,
}

impl Default for JournalSummary {
    /// Returns the summary of an empty journal.
    fn default() -> JournalSummary {
        JournalSummary {
            usage: RequestUsage::default(),
            reasks: 0,
            answered: 0,
            rounds: 1,
            finish: None,
        }
    }
}

impl JournalSummary {
    /// Sums up a journal.
    pub(super) fn read(journal: &Path) -> Result<JournalSummary, Error> {
        let mut summary = JournalSummary::default();
        for record in bakeoff_journal::read::<JournalRecord>(journal)? {
            match record? {
                JournalRecord::Plan(_) => {}
                JournalRecord::Request(request) => {
                    summary.usage += request.usage;
                    summary.reasks += match request.key.path == FIRST_PATH {
                        true => 0,
                        false => request.usage.requests,
                    };
                    summary.answered += request.answers.len() as u64;
                }
                JournalRecord::Finish(finish) => summary.finish = Some(finish),
                JournalRecord::Retry => {
                    (summary.rounds, summary.finish) = (summary.rounds + 1, None);
                }
            }
        }
        Ok(summary)
    }
}

/// Lookup of journaled requests, read from the journal while the rows are processed again.
///
/// Requests are journaled roughly in the order of their packs: the packs in progress at any time span
/// no more rows than a job holds in memory, so unclaimed records are bounded in the same way. Only
/// records of later rounds are at the end of the journal; until they are reached, the text of all
/// earlier unclaimed records is held.
#[derive(Debug)]
pub(super) struct JournalReplay {
    records: Option<Records<Box<RawValue>>>,
    /// Records read and not claimed yet.
    unclaimed: HashMap<RequestKey, Box<RawValue>>,
}

/// A record of which only the key is parsed.
#[derive(Deserialize)]
struct KeyedRecord {
    asked: Option<RequestKey>,
}

impl JournalReplay {
    /// Creates the replay of a new job.
    pub(super) fn empty() -> JournalReplay {
        JournalReplay { records: None, unclaimed: HashMap::new() }
    }

    /// Opens a journal at its first record.
    pub(super) fn new(journal: &Path) -> Result<JournalReplay, Error> {
        let records = Some(bakeoff_journal::read(journal)?);
        Ok(JournalReplay { records, unclaimed: HashMap::new() })
    }

    /// Removes and returns the record of a request; `None` if it is not journaled.
    ///
    /// The first `None` means that the journal is read to its end. Nothing may be appended to the
    /// journal before.
    pub(super) fn take(&mut self, key: &RequestKey) -> Result<Option<RequestRecord>, Error> {
        if let Some(text) = self.unclaimed.remove(key) {
            return Ok(parse_request(&text));
        }
        while let Some(text) = self.records.as_mut().and_then(Iterator::next) {
            let text = text?;
            let parsed = serde_json::from_str::<KeyedRecord>(text.get()).ok();
            if let Some(found) = parsed.and_then(|record| record.asked) {
                if found == *key {
                    return Ok(parse_request(&text));
                }
                self.unclaimed.insert(found, text);
            }
        }
        self.records = None;
        Ok(None)
    }

    /// Returns whether the journal has been read to its end.
    pub(super) fn is_finished(&self) -> bool {
        self.records.is_none()
    }
}

/// Parses a request record. All records are valid here, because [`JournalSummary::read`] has parsed
/// them before.
fn parse_request(text: &RawValue) -> Option<RequestRecord> {
    match serde_json::from_str(text.get()) {
        Ok(JournalRecord::Request(record)) => Some(record),
        _ => None,
    }
}
