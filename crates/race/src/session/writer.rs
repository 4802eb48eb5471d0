//! Writing of session files, by the owner of the file and by the judges of its session.

use super::SessionError;
use super::record::SessionRecord;
use bakeoff_agent::{LoopId, RecordedReply, ReplyJournal};
use bakeoff_core::Redactor;
use bakeoff_journal::Journal;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The writer of a session file.
#[derive(Debug)]
pub(super) struct SharedWriter(Arc<Mutex<SessionWriter>>);

#[derive(Debug)]
struct SessionWriter {
    journal: Journal,
    redactor: Redactor,
    /// Recorded replies of judges that no judge has taken yet.
    replies: Vec<RecordedReply>,
}

/// The journal that a session holds. It does not keep the file open.
#[derive(Debug)]
struct SessionReplyJournal(Weak<Mutex<SessionWriter>>);

impl SharedWriter {
    pub(super) fn new(
        journal: Journal,
        redactor: Redactor,
        replies: Vec<RecordedReply>,
    ) -> SharedWriter {
        SharedWriter(Arc::new(Mutex::new(SessionWriter { journal, redactor, replies })))
    }

    pub(super) fn reply_journal(&self) -> Arc<dyn ReplyJournal> {
        Arc::new(SessionReplyJournal(Arc::downgrade(&self.0)))
    }

    pub(super) fn set_redactor(&self, redactor: Redactor) {
        lock(&self.0).redactor = redactor;
    }

    pub(super) fn write(&self, record: &SessionRecord) -> Result<(), SessionError> {
        lock(&self.0).write(record)
    }

    pub(super) fn finish(self) -> Result<(), SessionError> {
        match Arc::into_inner(self.0) {
            Some(writer) => {
                let writer = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
                Ok(writer.journal.finish()?)
            }
            // A judge is writing its last record; the file is closed after it.
            None => Ok(()),
        }
    }
}

fn lock(writer: &Mutex<SessionWriter>) -> MutexGuard<'_, SessionWriter> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionWriter {
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

impl SessionReplyJournal {
    fn write(&self, record: &SessionRecord) {
        if let Some(writer) = self.0.upgrade() {
            // A record that cannot be written stays pending. The next one writes both or reports the failure.
            let _ = lock(&writer).write(record);
        }
    }
}

impl ReplyJournal for SessionReplyJournal {
    fn record_start(&self, loop_id: &LoopId) {
        self.write(&SessionRecord::JudgeStarted { loop_id: loop_id.clone() });
    }

    fn record_reply(&self, reply: RecordedReply) {
        self.write(&SessionRecord::JudgeReplied(reply));
    }

    fn take_reply(&self, key: &str) -> Option<RecordedReply> {
        let writer = self.0.upgrade()?;
        let replies = &mut lock(&writer).replies;
        let index = replies.iter().position(|reply| reply.key == key)?;
        Some(replies.remove(index))
    }
}
