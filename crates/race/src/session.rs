//! Session files: prompts, branch outcomes and verdicts of a sequence of races.
//!
//! A session file is append-only JSON lines. A branch is recorded as soon as it has ended, so an interrupted
//! race resumes without paying for it again. The conversation consists of the winners' messages of all
//! finished races.

use crate::error::RaceError;
use crate::outcome::{ParallelLoopOutcome, ParallelLoopResult};
use crate::parallel::Race;
use crate::strategy::Verdict;
use bakeoff_agent::{AgentContext, AgentMessage, LoopId, LoopStatus, Session};
use bakeoff_core::{FinishReason, NanoDollars, Redactor, SCHEMA_VERSION, Usage};
use bakeoff_journal::Journal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A session file, open for writing by this process only.
#[derive(Debug)]
pub struct SessionFile {
    journal: Journal,
    redactor: Redactor,
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

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum SessionRecord {
    SessionStarted {
        schema_version: u32,
        session_id: String,
        system_prompt: String,
    },
    RaceStarted {
        prompts: Vec<AgentMessage>,
        loop_ids: Vec<LoopId>,
        strategy: String,
        settings: Value,
    },
    BranchEnded(BranchRecord),
    /// The race can be resumed.
    RaceInterrupted {
        total_usage: Usage,
        /// As in `RaceEnded`.
        loops: u32,
    },
    RaceEnded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selected_index: Option<usize>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        total_usage: Usage,
        /// Number of loops in the session, including judges.
        loops: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct BranchRecord {
    config_index: usize,
    loop_id: LoopId,
    status: LoopStatus,
    new_messages: Vec<AgentMessage>,
    usage: Usage,
    #[serde(default, rename = "cost_nanodollars", skip_serializing_if = "Option::is_none")]
    cost: Option<NanoDollars>,
    #[serde(default)]
    unaccounted_calls: u32,
    elapsed_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish: Option<FinishReason>,
}

impl SessionFile {
    /// Creates a session file; the path must not exist or must be an empty file. Secrets known to the
    /// redactor are not written.
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
        let mut file = SessionFile { journal, redactor };
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
        let recorded = read(path)?;
        Ok((SessionFile { journal, redactor: Redactor::default() }, recorded))
    }

    /// Sets the secrets that must not be written from now on.
    pub fn set_redactor(&mut self, redactor: Redactor) {
        self.redactor = redactor;
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
        Ok(self.journal.finish()?)
    }

    fn write(&mut self, record: &SessionRecord) -> Result<(), SessionError> {
        let redacted = match serde_json::to_string(record) {
            Ok(json) if self.redactor.finds_in(&json) => {
                serde_json::from_str::<Value>(&self.redactor.scrub(json)).ok()
            }
            _ => None,
        };
        match redacted {
            Some(redacted) => self.journal.push(&redacted)?,
            None => self.journal.push(record)?,
        }
        Ok(self.journal.flush()?)
    }
}

fn read(path: &Path) -> Result<RecordedSession, SessionError> {
    let not_a_session = |reason: &str| SessionError::NotASession {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let mut records = bakeoff_journal::read::<SessionRecord>(path)?;
    let mut reader = match records.next() {
        Some(Ok(SessionRecord::SessionStarted { schema_version, .. }))
            if schema_version > SCHEMA_VERSION =>
        {
            let path = path.to_owned();
            return Err(SessionError::NewerVersion { path, version: schema_version });
        }
        Some(Ok(SessionRecord::SessionStarted { session_id, system_prompt, .. })) => {
            SessionReader::new(session_id, system_prompt)
        }
        Some(Err(bakeoff_journal::Error::Damaged { reason, .. })) => {
            return Err(not_a_session(&format!(
                "its first line is not a session record ({reason})"
            )));
        }
        Some(Err(error)) => return Err(error.into()),
        Some(Ok(_)) => return Err(not_a_session("its first record is not the start of a session")),
        None => return Err(not_a_session("it has no complete line")),
    };
    for (number, record) in (2_u64..).zip(records) {
        reader
            .apply(record?)
            .map_err(|reason| not_a_session(&format!("line {number}: {reason}")))?;
    }
    Ok(reader.finish())
}

/// Rebuilds a session from its records.
struct SessionReader {
    /// Recognises the session's loop ids; the number of loops is known at the end.
    session: Session,
    context: AgentContext,
    loops: u32,
    races: u32,
    last: Option<RecordedRace>,
    last_contested: Option<Value>,
    open: Option<UnfinishedRace>,
}

impl SessionReader {
    fn new(id: String, system_prompt: String) -> SessionReader {
        let session = Session::named(id);
        let context = AgentContext::default().with_system_prompt(system_prompt);
        SessionReader {
            session,
            context,
            loops: 0,
            races: 0,
            last: None,
            last_contested: None,
            open: None,
        }
    }

    fn apply(&mut self, record: SessionRecord) -> Result<(), String> {
        match record {
            SessionRecord::SessionStarted { .. } => return Err("another session starts".to_owned()),
            SessionRecord::RaceStarted { prompts, loop_ids, settings, .. } => {
                if self.open.is_some() {
                    return Err("a race starts before the last one has ended".to_owned());
                }
                let loop_ids =
                    loop_ids.iter().map(|id| self.own_id(id)).collect::<Result<Vec<_>, _>>()?;
                let last = loop_ids.iter().map(LoopId::number).max();
                self.loops = self.loops.max(last.unwrap_or_default());
                self.open = Some(UnfinishedRace { prompts, loop_ids, settings, ended: Vec::new() });
            }
            SessionRecord::BranchEnded(mut branch) => {
                branch.loop_id = self.own_id(&branch.loop_id)?;
                let race = self.open.as_mut().ok_or("a branch ends outside of a race")?;
                let recorded = race.loop_ids.get(branch.config_index);
                if recorded != Some(&branch.loop_id) {
                    return Err(format!("{} is not a branch of the race", branch.loop_id));
                }
                let mut outcome = outcome(branch, &self.context, &race.prompts);
                outcome.end_order = u32::try_from(race.ended.len()).ok();
                race.ended.retain(|earlier| earlier.config_index != outcome.config_index);
                race.ended.push(outcome);
            }
            SessionRecord::RaceInterrupted { loops, .. } => self.loops = self.loops.max(loops),
            SessionRecord::RaceEnded { selected_index, loops, .. } => {
                let race = self.open.take().ok_or("a race ends that has not started")?;
                self.races += 1;
                self.loops = self.loops.max(loops);
                if race.loop_ids.len() > 1 {
                    self.last_contested = Some(race.settings.clone());
                }
                if let Some(selected_index) = selected_index {
                    let is_winner =
                        |branch: &&ParallelLoopOutcome| branch.config_index == selected_index;
                    let winner = race.ended.iter().find(is_winner);
                    let winner = winner.ok_or("the winner has not ended")?;
                    self.context.messages = winner.context.messages.clone();
                    self.last = Some(RecordedRace { settings: race.settings, selected_index });
                }
            }
        }
        Ok(())
    }

    /// Validates that a loop id belongs to this session.
    fn own_id(&self, loop_id: &LoopId) -> Result<LoopId, String> {
        let own = self.session.recognise(loop_id);
        own.ok_or_else(|| format!("{loop_id} is not a loop of the session"))
    }

    fn finish(self) -> RecordedSession {
        let session = Session::resumed(self.session.id(), self.loops);
        let unfinished = self.open;
        RecordedSession {
            context: self.context.with_session(session),
            races: self.races,
            last: self.last,
            last_contested: self.last_contested,
            unfinished,
        }
    }
}

fn outcome(
    branch: BranchRecord,
    base: &AgentContext,
    prompts: &[AgentMessage],
) -> ParallelLoopOutcome {
    let mut context = base.clone();
    context.messages.extend(prompts.iter().cloned().chain(branch.new_messages.iter().cloned()));
    ParallelLoopOutcome {
        config_index: branch.config_index,
        loop_id: branch.loop_id,
        status: branch.status,
        context,
        new_messages: branch.new_messages,
        usage: branch.usage,
        cost: branch.cost,
        unaccounted_calls: branch.unaccounted_calls,
        end_order: None,
        last_retry: None,
        elapsed: Duration::from_millis(branch.elapsed_ms),
        original_context_len: base.messages.len(),
        finish: branch.finish,
    }
}
