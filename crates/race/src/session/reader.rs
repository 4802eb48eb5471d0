//! Reading of session files.

use super::record::{BranchRecord, SessionRecord};
use super::{RecordedRace, RecordedSession, SessionError, UnfinishedRace};
use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::{AgentContext, AgentMessage, LoopId, RecordedReply, Session};
use bakeoff_core::SCHEMA_VERSION;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

pub(super) fn read(path: &Path) -> Result<RecordedFile, SessionError> {
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

/// Content of a session file.
pub(super) struct RecordedFile {
    pub(super) session: RecordedSession,
    /// Replies of the judges of the interrupted race, in order.
    pub(super) replies: Vec<RecordedReply>,
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
    /// Replies of the judges of the open race.
    replies: Vec<RecordedReply>,
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
            replies: Vec::new(),
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
            SessionRecord::JudgeStarted { loop_id } => {
                if self.open.is_none() {
                    return Err("a judge starts outside of a race".to_owned());
                }
                self.loops = self.loops.max(self.own_id(&loop_id)?.number());
            }
            SessionRecord::JudgeReplied(reply) => {
                if self.open.is_none() {
                    return Err("a judge replies outside of a race".to_owned());
                }
                let loop_id = self.own_id(&reply.loop_id)?;
                self.loops = self.loops.max(loop_id.number());
                self.replies.push(RecordedReply { loop_id, ..reply });
            }
            SessionRecord::RaceInterrupted { loops, .. } => self.loops = self.loops.max(loops),
            SessionRecord::RaceEnded { selected_index, loops, .. } => {
                let race = self.open.take().ok_or("a race ends that has not started")?;
                self.replies.clear();
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

    fn finish(self) -> RecordedFile {
        let session = Session::resumed(self.session.id(), self.loops);
        let unfinished = self.open;
        let session = RecordedSession {
            context: self.context.with_session(session),
            races: self.races,
            last: self.last,
            last_contested: self.last_contested,
            unfinished,
        };
        RecordedFile { session, replies: self.replies }
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
        refused_calls: branch.refused_calls,
        end_order: None,
        last_retry: None,
        elapsed: Duration::from_millis(branch.elapsed_ms),
        original_context_len: base.messages.len(),
        finish: branch.finish,
    }
}
