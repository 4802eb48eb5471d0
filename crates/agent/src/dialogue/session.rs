//! Sessions and the ids of their loops.

use super::journal::ReplyJournal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A session of one or more consecutive loops. Clones are the same session.
#[derive(Debug, Clone)]
pub struct Session {
    id: Arc<str>,
    loops: Arc<AtomicU32>,
    /// Never locked across an await.
    journal: Arc<Mutex<Option<Arc<dyn ReplyJournal>>>>,
}

impl Default for Session {
    /// Creates a session with a random id.
    fn default() -> Session {
        Session::resumed(format!("ses_{:012x}", rand::random::<u64>() >> 16), 0)
    }
}

impl Session {
    /// Creates a session with this id.
    pub fn named(id: impl Into<Arc<str>>) -> Session {
        Session::resumed(id, 0)
    }

    /// Restores a session that had `loops` loops before.
    pub fn resumed(id: impl Into<Arc<str>>, loops: u32) -> Session {
        let (loops, journal) = (Arc::new(AtomicU32::new(loops)), Arc::default());
        Session { id: id.into(), loops, journal }
    }

    /// Sets the journal of replies; it replaces an earlier one.
    pub fn set_journal(&self, journal: Arc<dyn ReplyJournal>) {
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = Some(journal);
    }

    /// Returns the journal of replies, if any.
    pub fn journal(&self) -> Option<Arc<dyn ReplyJournal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the id of the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of loops so far.
    pub fn loops(&self) -> u32 {
        self.loops.load(Ordering::Relaxed)
    }

    /// Returns the id of the next loop: `{session}.{segment}.{number}`.
    pub fn next_loop(&self, segment: &str) -> LoopId {
        let number = self.loops.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        LoopId {
            text: format!("{}.{segment}.{number}", self.id).into(),
            session_bytes: self.id.len(),
            number,
        }
    }

    /// Returns the id with its parts assigned, or `None` if it is not of this session. A deserialized id alone
    /// does not show where a session id that contains a dot ends.
    pub fn recognise(&self, loop_id: &LoopId) -> Option<LoopId> {
        let rest = loop_id.text.strip_prefix(&*self.id)?;
        let has_segment = rest.strip_prefix('.').is_some_and(|rest| rest.contains('.'));
        has_segment.then(|| LoopId { session_bytes: self.id.len(), ..loop_id.clone() })
    }
}

/// Id of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoopId {
    text: Arc<str>,
    /// Length of the session id.
    session_bytes: usize,
    number: u32,
}

impl LoopId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the number of the loop in its session, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the part between session and number, which names the config.
    pub fn segment(&self) -> &str {
        let rest = self.text.get(self.session_bytes..).unwrap_or_default();
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        rest.rsplit_once('.').map_or(rest, |(segment, _)| segment)
    }
}

impl fmt::Display for LoopId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for LoopId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for LoopId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LoopId, D::Error> {
        let text = Box::<str>::deserialize(deserializer)?;
        let number = text.rsplit('.').next().and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| {
            serde::de::Error::custom(format!("`{text}` does not end in the number of a loop"))
        })?;
        let session_bytes = text.find('.').unwrap_or_default();
        Ok(LoopId { text: text.into(), session_bytes, number })
    }
}
