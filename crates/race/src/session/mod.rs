//! Session files: prompts, branch outcomes and verdicts of a sequence of races.
//!
//! A session file is append-only JSON lines. A branch is recorded as soon as it has ended, and a reply of a judge as
//! soon as it has arrived, so an interrupted race resumes without paying for them again. The conversation consists of the winners' messages of all
//! finished races.

mod reader;
mod record;
mod writer;

use crate::error::RaceError;
use crate::outcome::{ParallelLoopOutcome, ParallelLoopResult};
use crate::parallel::Race;
use bakeoff_agent::{AgentContext, AgentMessage, LoopId, LoopStatus, Session};
use bakeoff_core::{Redactor, SCHEMA_VERSION, Usage};
use bakeoff_journal::Journal;
use reader::{RecordedFile, read};
use record::{BranchRecord, SessionRecord};
use serde_json::Value;
use std::path::{Path, PathBuf};
use writer::SharedWriter;

/// A session file, open for writing by this process only.
#[derive(Debug)]
pub struct SessionFile {
    writer: SharedWriter,
}

/// The content of a session file.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordedSession {
    /// The conversation, ready to be continued.
    pub context: AgentContext,
    /// Number of finished races, with or without a winner.
    pub races: u32,
    /// The last race with a winner.
    pub last: Option<RecordedRace>,
    /// Settings of the last race with more than one branch.
    pub last_contested: Option<Value>,
    /// The interrupted race, if any.
    pub unfinished: Option<UnfinishedRace>,
}

/// A finished race with a winner.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordedRace {
    /// Settings that the caller recorded.
    pub settings: Value,
    /// Index of the winner's config.
    pub selected_index: usize,
}

/// An interrupted race.
#[derive(Debug)]
pub struct UnfinishedRace {
    /// The prompts.
    pub prompts: Vec<AgentMessage>,
    /// Loop ids of the branches, in config order.
    pub loop_ids: Vec<LoopId>,
    /// Settings that the caller recorded.
    pub settings: Value,
    /// Outcomes of the branches that have ended.
    pub ended: Vec<ParallelLoopOutcome>,
}

/// Why a session file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The file cannot be read or written, is damaged, or is locked by another process.
    #[error(transparent)]
    Journal(#[from] bakeoff_journal::Error),
    /// The file is not a session.
    #[error("{} is not a session: {reason}", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file was written by a newer version of Bakeoff.
    #[error("{} was written by a newer Bakeoff (file format {version}, supported up to {SCHEMA_VERSION})", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its format version.
        version: u32,
    },
}

impl SessionFile {
    /// Creates a session file; the path must not exist or must be an empty file. Secrets known to the
    /// redactor are not written. Judges in the context's session are recorded from now on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn create(
        path: &Path,
        context: &AgentContext,
        redactor: Redactor,
    ) -> Result<SessionFile, SessionError> {
        let is_empty = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0);
        let journal = if is_empty { Journal::reopen(path)? } else { Journal::create(path)? };
        let writer = SharedWriter::new(journal, redactor, Vec::new());
        context.session.set_journal(writer.reply_journal());
        let mut file = SessionFile { writer };
        file.write(&SessionRecord::SessionStarted {
            schema_version: SCHEMA_VERSION,
            session_id: context.session.id().to_owned(),
            system_prompt: context.system_prompt.clone(),
        })?;
        Ok(file)
    }

    /// Opens a session to continue it. Set its secrets with [`SessionFile::set_redactor`].
    ///
    /// # Errors
    ///
    /// All of [`SessionError`].
    pub fn open(path: &Path) -> Result<(SessionFile, RecordedSession), SessionError> {
        let is_file = std::fs::metadata(path).is_ok_and(|file| file.is_file());
        if path.exists() && !is_file {
            let reason = "not a regular file".to_owned();
            return Err(SessionError::NotASession { path: path.to_owned(), reason });
        }
        // Opening truncates a torn last line, which must not happen to a file that is not a session.
        read(path)?;
        let journal = Journal::reopen(path)?;
        // Another process may have written before the lock was acquired.
        let RecordedFile { session, replies } = read(path)?;
        let writer = SharedWriter::new(journal, Redactor::default(), replies);
        session.context.session.set_journal(writer.reply_journal());
        Ok((SessionFile { writer }, session))
    }

    /// Sets the secrets that must not be written from now on.
    pub fn set_redactor(&mut self, redactor: Redactor) {
        self.writer.set_redactor(redactor);
    }

    /// Records the start of a race, with the caller's settings. A resumed race is already recorded.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn record_start(&mut self, race: &Race, settings: Value) -> Result<(), SessionError> {
        if race.is_resumed() {
            return Ok(());
        }
        self.write(&SessionRecord::RaceStarted {
            prompts: race.prompts().to_vec(),
            loop_ids: race.loop_ids().to_vec(),
            strategy: race.strategy().to_owned(),
            settings,
        })
    }

    /// Records the outcome of a branch. A cancelled branch is not recorded, so that a resumed race runs it
    /// again.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn record_branch(&mut self, outcome: &ParallelLoopOutcome) -> Result<(), SessionError> {
        if outcome.status == LoopStatus::Cancelled {
            return Ok(());
        }
        self.write(&SessionRecord::BranchEnded(BranchRecord {
            config_index: outcome.config_index,
            loop_id: outcome.loop_id.clone(),
            status: outcome.status.clone(),
            new_messages: outcome.new_messages.clone(),
            usage: outcome.usage,
            cost: outcome.cost,
            unaccounted_calls: outcome.unaccounted_calls,
            refused_calls: outcome.refused_calls.clone(),
            elapsed_ms: u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX),
            finish: outcome.finish.clone(),
        }))
    }

    /// Records the end of a race. A cancelled race is recorded as interrupted and can be resumed.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn record_end(
        &mut self,
        session: &Session,
        result: &Result<ParallelLoopResult, RaceError>,
    ) -> Result<(), SessionError> {
        let loops = session.loops();
        let record = match result {
            Ok(result) => SessionRecord::RaceEnded {
                selected_index: Some(result.selected_index),
                verdict: Some(result.verdict.clone()),
                error: None,
                total_usage: result.total_usage,
                loops,
            },
            Err(RaceError::Cancelled { total_usage, .. }) => {
                SessionRecord::RaceInterrupted { total_usage: *total_usage, loops }
            }
            Err(error) => SessionRecord::RaceEnded {
                selected_index: None,
                verdict: match error {
                    RaceError::NoneAcceptable { verdict, .. } => Some((**verdict).clone()),
                    _ => None,
                },
                error: Some(error.to_string()),
                total_usage: error.total_usage(),
                loops,
            },
        };
        self.write(&record)
    }

    /// Records that an interrupted race is discarded; the conversation is as before the race.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn record_discard(
        &mut self,
        session: &Session,
        race: &UnfinishedRace,
    ) -> Result<(), SessionError> {
        let mut total_usage = Usage::default();
        race.ended.iter().for_each(|branch| total_usage += branch.usage);
        let (loops, error) = (session.loops(), Some("abandoned".to_owned()));
        let (selected_index, verdict) = (None, None);
        self.write(&SessionRecord::RaceEnded { selected_index, verdict, error, total_usage, loops })
    }

    /// Syncs the file to disk and closes it.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn finish(self) -> Result<(), SessionError> {
        self.writer.finish()
    }

    fn write(&mut self, record: &SessionRecord) -> Result<(), SessionError> {
        self.writer.write(record)
    }
}
