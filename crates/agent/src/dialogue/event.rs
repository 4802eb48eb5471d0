//! What happens in loops, as it happens.

use super::end::LoopStatus;
use super::session::LoopId;
use bakeoff_core::{Message, NanoDollars, ToolCall, Usage};
use bakeoff_llm::Delta;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The application.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Role {
    /// Who says this one.
    pub fn of(message: &Message) -> Role {
        match message {
            Message::System { .. } => Role::System,
            Message::User { .. } => Role::User,
            Message::Assistant { .. } => Role::Assistant,
            Message::ToolResult { .. } => Role::Tool,
        }
    }
}

/// Something that happened in a loop or in a race of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// A loop begins.
    AgentStart {
        /// Which loop.
        loop_id: LoopId,
        /// Its session.
        session_id: String,
        /// The model that it asks.
        model: String,
        /// When.
        timestamp: Timestamp,
    },
    /// A loop is over. Nothing more comes from it.
    AgentEnd {
        /// Which loop.
        loop_id: LoopId,
        /// How it ended.
        status: LoopStatus,
        /// Tokens of all its calls.
        usage: Usage,
        /// Money for all its calls, where the price is known.
        #[serde(rename = "cost_nanodollars", skip_serializing_if = "Option::is_none")]
        cost: Option<NanoDollars>,
        /// When.
        timestamp: Timestamp,
    },
    /// The model is about to be asked.
    TurnStart {
        /// Which loop.
        loop_id: LoopId,
        /// Which turn, from 1.
        turn: u32,
    },
    /// The turn is over: the model's tools have run, it called none, or the call failed.
    TurnEnd {
        /// Which loop.
        loop_id: LoopId,
        /// Which turn, from 1.
        turn: u32,
        /// Tokens of its call.
        usage: Usage,
    },
    /// A message begins.
    MessageStart {
        /// Which loop.
        loop_id: LoopId,
        /// Who says it.
        role: Role,
    },
    /// There is no message after all: the call was given up or failed, or the answer is empty.
    /// Pieces that have arrived are void.
    MessageAborted {
        /// Which loop.
        loop_id: LoopId,
    },
    /// A piece of the model's message has arrived.
    MessageUpdate {
        /// Which loop.
        loop_id: LoopId,
        /// The piece.
        delta: Delta,
    },
    /// A message is complete.
    MessageEnd {
        /// Which loop.
        loop_id: LoopId,
        /// The message.
        message: Arc<Message>,
    },
    /// The call is made again; pieces that have arrived are void.
    Retry {
        /// Which loop.
        loop_id: LoopId,
        /// After which pause; 0 when it goes to the front of its pool's queue.
        delay_ms: u64,
        /// Why.
        reason: String,
    },
    /// A tool begins to run.
    ToolExecutionStart {
        /// Which loop.
        loop_id: LoopId,
        /// What was called.
        call: ToolCall,
    },
    /// A tool has run.
    ToolExecutionEnd {
        /// Which loop.
        loop_id: LoopId,
        /// Id of the call.
        call_id: String,
        /// Which tool.
        name: String,
        /// It failed, and its result says why.
        is_error: bool,
    },
    /// The conversation was too long; less of it was sent.
    Compaction {
        /// Which loop.
        loop_id: LoopId,
        /// Messages that there are.
        messages: usize,
        /// Messages that were sent.
        sent_messages: usize,
        /// Tokens that there are, estimated.
        tokens: u64,
        /// Tokens that were sent, estimated.
        sent_tokens: u64,
    },
    /// Something that people may want to know.
    ProgressMessage {
        /// Which loop.
        loop_id: LoopId,
        /// What.
        text: String,
    },
    /// A race of several loops begins.
    ParallelLoopStart {
        /// Its session.
        session_id: String,
        /// One per branch, in the order of the configs.
        loop_ids: Vec<LoopId>,
        /// When.
        timestamp: Timestamp,
    },
    /// A race has a winner.
    ParallelLoopEnd {
        /// Its session.
        session_id: String,
        /// The winner; absent when there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        selected_loop_id: Option<LoopId>,
        /// The winner's place among the configs.
        #[serde(skip_serializing_if = "Option::is_none")]
        selected_config_index: Option<usize>,
        /// Tokens of the evaluation; none when no judge was asked.
        evaluation_usage: Usage,
        /// When.
        timestamp: Timestamp,
    },
    /// The reader was too slow, and so many pieces and notes were left out here.
    Lagged {
        /// How many.
        missed: u64,
    },
}

impl AgentEvent {
    /// The loop that it belongs to.
    pub fn loop_id(&self) -> Option<&LoopId> {
        match self {
            AgentEvent::AgentStart { loop_id, .. }
            | AgentEvent::AgentEnd { loop_id, .. }
            | AgentEvent::TurnStart { loop_id, .. }
            | AgentEvent::TurnEnd { loop_id, .. }
            | AgentEvent::MessageStart { loop_id, .. }
            | AgentEvent::MessageUpdate { loop_id, .. }
            | AgentEvent::MessageEnd { loop_id, .. }
            | AgentEvent::MessageAborted { loop_id }
            | AgentEvent::Retry { loop_id, .. }
            | AgentEvent::ToolExecutionStart { loop_id, .. }
            | AgentEvent::ToolExecutionEnd { loop_id, .. }
            | AgentEvent::Compaction { loop_id, .. }
            | AgentEvent::ProgressMessage { loop_id, .. } => Some(loop_id),
            AgentEvent::ParallelLoopStart { .. }
            | AgentEvent::ParallelLoopEnd { .. }
            | AgentEvent::Lagged { .. } => None,
        }
    }

    /// Whether a reader that is too slow can do without it.
    pub(super) fn may_be_dropped(&self) -> bool {
        matches!(
            self,
            AgentEvent::MessageUpdate { .. }
                | AgentEvent::Retry { .. }
                | AgentEvent::ProgressMessage { .. }
        )
    }
}
