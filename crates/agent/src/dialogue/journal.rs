//! Journal of replies in a session.

use super::session::LoopId;
use bakeoff_core::{FinishReason, NanoDollars, Usage};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Keeps the replies of single-turn loops, such as those of judges, so that an interrupted session does not pay for
/// them again. Implementations report failures to write through their own interface.
pub trait ReplyJournal: Send + Sync + fmt::Debug {
    /// Records that a loop starts, so that a resumed session does not use its id again.
    fn record_start(&self, loop_id: &LoopId);

    /// Records the reply of a loop.
    fn record_reply(&self, reply: RecordedReply);

    /// Returns the earliest recorded reply with this key that was not returned before.
    fn take_reply(&self, key: &str) -> Option<RecordedReply>;
}

/// Reply of a single-turn loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedReply {
    /// Id of the loop.
    pub loop_id: LoopId,
    /// Digest of everything that the reply depends on.
    pub key: String,
    /// Text of the reply.
    pub text: String,
    /// Finish reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishReason>,
    /// Token usage of the call.
    pub usage: Usage,
    /// Cost of the call; `None` if the price is unknown.
    #[serde(default, rename = "cost_nanodollars", skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoDollars>,
}
