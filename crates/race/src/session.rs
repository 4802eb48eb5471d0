//! Sessions on disk: what was asked, what every branch said, who won.
//!
//! An append-only file of JSON lines. A branch is on disk as soon as it has ended, so that a race
//! that was interrupted goes on without paying for it again; the conversation is what the winners
//! of all races that ended have said.

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

/// A session's file, open for writing. Nobody else can write it meanwhile.
#[derive(Debug)]
pub struct SessionFile {
    journal: Journal,
    redactor: Redactor,
}

/// What a session's file says.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordedSession {
    /// The conversation, to go on with.
    pub context: AgentContext,
    /// Races that have ended, with a winner or without.
    pub races: u32,
    /// The last race that had a winner.
    pub last: Option<RecordedRace>,
    /// What the caller wrote down about the last race in which there was something to choose, whoever
    /// won.
    pub last_contested: Option<Value>,
    /// A race that has not ended.
    pub unfinished: Option<UnfinishedRace>,
}

/// A race that had a winner.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordedRace {
    /// What the caller wrote down about it.
    pub settings: Value,
    /// The winner's place among its configs.
    pub selected_index: usize,
}

/// A race that was interrupted.
#[derive(Debug)]
pub struct UnfinishedRace {
    /// What was asked.
    pub prompts: Vec<AgentMessage>,
    /// The branches' loops, in the order of the configs.
    pub loop_ids: Vec<LoopId>,
    /// What the caller wrote down about it.
    pub settings: Value,
    /// Branches that have ended.
    pub ended: Vec<ParallelLoopOutcome>,
}

/// A session's file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// It cannot be read or written, is damaged, or somebody else writes it.
    #[error(transparent)]
    Journal(#[from] bakeoff_journal::Error),
    /// It is something else.
    #[error("{} is no session: {reason}", path.display())]
    NoSession {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A later Bakeoff wrote it.
    #[error("{} was written by a newer Bakeoff (version {version} of its files, this one knows {SCHEMA_VERSION})", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
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
    BranchEnded(Branch),
    /// It can go on.
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
        /// Loops that the session has had, those of judges among them.
        loops: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct Branch {
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
    /// Starts a file for a session; there must be none yet, or an empty one. No secret that the
    /// redactor knows is written.
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
        file.write(&Line::SessionStarted {
            schema_version: SCHEMA_VERSION,
            session_id: context.session.id().to_owned(),
            system_prompt: context.system_prompt.clone(),
        })?;
        Ok(file)
    }

    /// Goes on with a session. Name its secrets with [`SessionFile::keep_secret`].
    ///
    /// # Errors
    ///
    /// All of [`SessionError`].
    pub fn open(path: &Path) -> Result<(SessionFile, RecordedSession), SessionError> {
        let is_file = std::fs::metadata(path).is_ok_and(|file| file.is_file());
        if path.exists() && !is_file {
            let reason = "it is not a regular file".to_owned();
            return Err(SessionError::NoSession { path: path.to_owned(), reason });
        }
        // Opening cuts off a torn line, which must not happen to a file that is something else.
        read(path)?;
        let journal = Journal::reopen(path)?;
        // Somebody may have written until we held it.
        let recorded = read(path)?;
        Ok((SessionFile { journal, redactor: Redactor::default() }, recorded))
    }

    /// Names secrets that must not be written from now on.
    pub fn keep_secret(&mut self, redactor: Redactor) {
        self.redactor = redactor;
    }

    /// Writes that a race begins, with whatever the caller wants to find again. One that goes on has
    /// begun already.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn race_started(&mut self, race: &Race, settings: Value) -> Result<(), SessionError> {
        if race.is_resumed() {
            return Ok(());
        }
        self.write(&Line::RaceStarted {
            prompts: race.prompts().to_vec(),
            loop_ids: race.loop_ids().to_vec(),
            strategy: race.strategy().to_owned(),
            settings,
        })
    }

    /// Writes what became of a branch. One that was cancelled has not ended: should the race go on,
    /// it is run again.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn branch_ended(&mut self, outcome: &ParallelLoopOutcome) -> Result<(), SessionError> {
        if outcome.status == LoopStatus::Cancelled {
            return Ok(());
        }
        self.write(&Line::BranchEnded(Branch {
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

    /// Writes how a race ended. One that was cancelled has only been interrupted: it can go on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn race_ended(
        &mut self,
        session: &Session,
        result: &Result<ParallelLoopResult, RaceError>,
    ) -> Result<(), SessionError> {
        let loops = session.loops();
        let line = match result {
            Ok(result) => Line::RaceEnded {
                selected_index: Some(result.selected_index),
                verdict: Some(result.verdict.clone()),
                error: None,
                total_usage: result.total_usage,
                loops,
            },
            Err(RaceError::Cancelled { total_usage, .. }) => {
                Line::RaceInterrupted { total_usage: *total_usage, loops }
            }
            Err(error) => Line::RaceEnded {
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
        self.write(&line)
    }

    /// Writes that a race was given up; the conversation is as before it.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn race_abandoned(
        &mut self,
        session: &Session,
        race: &UnfinishedRace,
    ) -> Result<(), SessionError> {
        let mut total_usage = Usage::default();
        race.ended.iter().for_each(|branch| total_usage += branch.usage);
        let (loops, error) = (session.loops(), Some("abandoned".to_owned()));
        let (selected_index, verdict) = (None, None);
        self.write(&Line::RaceEnded { selected_index, verdict, error, total_usage, loops })
    }

    /// Forces everything to disk and closes the file.
    ///
    /// # Errors
    ///
    /// [`SessionError::Journal`].
    pub fn finish(self) -> Result<(), SessionError> {
        Ok(self.journal.finish()?)
    }

    fn write(&mut self, line: &Line) -> Result<(), SessionError> {
        let clean = match serde_json::to_string(line) {
            Ok(json) if self.redactor.finds_in(&json) => {
                serde_json::from_str::<Value>(&self.redactor.scrub(json)).ok()
            }
            _ => None,
        };
        match clean {
            Some(clean) => self.journal.push(&clean)?,
            None => self.journal.push(line)?,
        }
        Ok(self.journal.flush()?)
    }
}

fn read(path: &Path) -> Result<RecordedSession, SessionError> {
    let no_session =
        |reason: &str| SessionError::NoSession { path: path.to_owned(), reason: reason.to_owned() };
    let mut lines = bakeoff_journal::read::<Line>(path)?;
    let mut reading = match lines.next() {
        Some(Ok(Line::SessionStarted { schema_version, .. }))
            if schema_version > SCHEMA_VERSION =>
        {
            let path = path.to_owned();
            return Err(SessionError::Newer { path, version: schema_version });
        }
        Some(Ok(Line::SessionStarted { session_id, system_prompt, .. })) => {
            Reading::new(session_id, system_prompt)
        }
        Some(Err(bakeoff_journal::Error::Damaged { reason, .. })) => {
            return Err(no_session(&format!("its first line is not one of a session ({reason})")));
        }
        Some(Err(error)) => return Err(error.into()),
        Some(Ok(_)) => return Err(no_session("it does not begin with the start of a session")),
        None => return Err(no_session("it has no whole line")),
    };
    for (number, line) in (2_u64..).zip(lines) {
        reading.take(line?).map_err(|reason| no_session(&format!("line {number}: {reason}")))?;
    }
    Ok(reading.finish())
}

/// A session, as far as its file was read.
struct Reading {
    /// Knows its loops by name; how many there were is known at the end.
    session: Session,
    context: AgentContext,
    loops: u32,
    races: u32,
    last: Option<RecordedRace>,
    last_contested: Option<Value>,
    open: Option<UnfinishedRace>,
}

impl Reading {
    fn new(id: String, system_prompt: String) -> Reading {
        let session = Session::named(id);
        let context = AgentContext { system_prompt, ..AgentContext::default() };
        Reading {
            session,
            context,
            loops: 0,
            races: 0,
            last: None,
            last_contested: None,
            open: None,
        }
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::SessionStarted { .. } => return Err("another session starts".to_owned()),
            Line::RaceStarted { prompts, loop_ids, settings, .. } => {
                if self.open.is_some() {
                    return Err("a race starts before the last one has ended".to_owned());
                }
                let loop_ids =
                    loop_ids.iter().map(|id| self.own(id)).collect::<Result<Vec<_>, _>>()?;
                let most = loop_ids.iter().map(LoopId::number).max();
                self.loops = self.loops.max(most.unwrap_or_default());
                self.open = Some(UnfinishedRace { prompts, loop_ids, settings, ended: Vec::new() });
            }
            Line::BranchEnded(mut branch) => {
                branch.loop_id = self.own(&branch.loop_id)?;
                let race = self.open.as_mut().ok_or("a branch ends outside of a race")?;
                let place = race.loop_ids.get(branch.config_index);
                if place != Some(&branch.loop_id) {
                    return Err(format!("{} is not a branch of the race", branch.loop_id));
                }
                let mut outcome = outcome(branch, &self.context, &race.prompts);
                outcome.end_order = u32::try_from(race.ended.len()).ok();
                race.ended.retain(|earlier| earlier.config_index != outcome.config_index);
                race.ended.push(outcome);
            }
            Line::RaceInterrupted { loops, .. } => self.loops = self.loops.max(loops),
            Line::RaceEnded { selected_index, loops, .. } => {
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

    /// The name of a loop of this session.
    fn own(&self, loop_id: &LoopId) -> Result<LoopId, String> {
        let own = self.session.recognise(loop_id);
        own.ok_or_else(|| format!("{loop_id} is not a loop of the session"))
    }

    fn finish(self) -> RecordedSession {
        let session = Session::resumed(self.session.id(), self.loops);
        let unfinished = self.open;
        RecordedSession {
            context: AgentContext { session, ..self.context },
            races: self.races,
            last: self.last,
            last_contested: self.last_contested,
            unfinished,
        }
    }
}

fn outcome(branch: Branch, base: &AgentContext, prompts: &[AgentMessage]) -> ParallelLoopOutcome {
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
