//! Events of agent loops and races.

use super::end::LoopStatus;
use super::session::LoopId;
use bakeoff_core::{Message, NanoDollars, ToolCall, Usage};
use bakeoff_llm::Delta;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// Instructions of the application.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl MessageRole {
    /// Returns the role of a message.
    pub fn of(message: &Message) -> MessageRole {
        match message {
            Message::System { .. } => MessageRole::System,
            Message::User { .. } => MessageRole::User,
            Message::Assistant { .. } => MessageRole::Assistant,
            Message::ToolResult { .. } => MessageRole::Tool,
        }
    }
}

/// Event of a loop or of a race of several loops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// A loop started.
    AgentStart {
        /// Id of the loop.
        loop_id: LoopId,
        /// Id of the session.
        session_id: String,
        /// Name of the model.
        model: String,
        /// Time of the event.
        timestamp: DateTime<Utc>,
    },
    /// A loop ended. It sends no further events.
    AgentEnd {
        /// Id of the loop.
        loop_id: LoopId,
        /// Final status.
        status: LoopStatus,
        /// Token usage of all its calls.
        usage: Usage,
        /// Cost of all its calls, if the price is known.
        #[serde(rename = "cost_nanodollars", skip_serializing_if = "Option::is_none")]
        cost: Option<NanoDollars>,
        /// Time of the event.
        timestamp: DateTime<Utc>,
    },
    /// A model call is about to be made.
    TurnStart {
        /// Id of the loop.
        loop_id: LoopId,
        /// Number of the turn, from 1.
        turn: u32,
    },
    /// A turn ended: its tool calls have run, it had none, or the model call failed.
    TurnEnd {
        /// Id of the loop.
        loop_id: LoopId,
        /// Number of the turn, from 1.
        turn: u32,
        /// Token usage of its call.
        usage: Usage,
        /// Fields of the provider's response that the message does not represent.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extra: Map<String, Value>,
    },
    /// A message started.
    MessageStart {
        /// Id of the loop.
        loop_id: LoopId,
        /// Sender of the message.
        role: MessageRole,
    },
    /// The started message does not exist: the call was abandoned or failed, or the response is empty. Updates
    /// received for it are void.
    MessageAborted {
        /// Id of the loop.
        loop_id: LoopId,
    },
    /// A part of a model message arrived.
    MessageUpdate {
        /// Id of the loop.
        loop_id: LoopId,
        /// The part.
        delta: Delta,
    },
    /// A message is complete.
    MessageEnd {
        /// Id of the loop.
        loop_id: LoopId,
        /// The message.
        message: Arc<Message>,
    },
    /// The request is retried; updates received so far are void.
    Retry {
        /// Id of the loop.
        loop_id: LoopId,
        /// Delay before the retry; 0 if it goes to the front of the queue of its pool.
        delay_ms: u64,
        /// Reason of the retry.
        reason: String,
    },
    /// A tool call started.
    ToolExecutionStart {
        /// Id of the loop.
        loop_id: LoopId,
        /// The call.
        call: ToolCall,
    },
    /// A tool call ended.
    ToolExecutionEnd {
        /// Id of the loop.
        loop_id: LoopId,
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        name: String,
        /// The call failed; its result contains the reason.
        is_error: bool,
    },
    /// The conversation was too long and was compacted for one call.
    Compaction {
        /// Id of the loop.
        loop_id: LoopId,
        /// Number of messages in the conversation.
        messages: usize,
        /// Number of messages sent.
        sent_messages: usize,
        /// Estimated tokens of the conversation.
        tokens: u64,
        /// Estimated tokens sent.
        sent_tokens: u64,
    },
    /// A message for the user.
    ProgressMessage {
        /// Id of the loop.
        loop_id: LoopId,
        /// Text of the message.
        text: String,
    },
    /// A race of several loops started.
    ParallelLoopStart {
        /// Id of the session.
        session_id: String,
        /// Ids of the branches, in the order of the configs.
        loop_ids: Vec<LoopId>,
        /// Time of the event.
        timestamp: DateTime<Utc>,
    },
    /// A judge of a race is asked in a round.
    JudgeRound {
        /// Ids of the judge's loops in this round; a reply recorded before an interruption keeps its own id.
        loop_ids: Vec<LoopId>,
        /// Number of the round, from 1.
        round: u32,
        /// Maximum number of rounds.
        max_rounds: u32,
    },
    /// A race ended.
    ParallelLoopEnd {
        /// Id of the session.
        session_id: String,
        /// Id of the winner, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        selected_loop_id: Option<LoopId>,
        /// Index of the winner among the configs.
        #[serde(skip_serializing_if = "Option::is_none")]
        selected_config_index: Option<usize>,
        /// Token usage of the evaluation; zero without judge calls.
        evaluation_usage: Usage,
        /// Time of the event.
        timestamp: DateTime<Utc>,
    },
    /// The receiver was too slow, and events were dropped at this point.
    Lagged {
        /// Number of dropped events.
        missed: u64,
    },
}

impl AgentEvent {
    /// Returns the loop of the event, if it belongs to one.
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
            | AgentEvent::JudgeRound { .. }
            | AgentEvent::ParallelLoopEnd { .. }
            | AgentEvent::Lagged { .. } => None,
        }
    }

    /// Returns whether the event may be dropped for a slow receiver.
    pub(super) fn is_droppable(&self) -> bool {
        matches!(
            self,
            AgentEvent::MessageUpdate { .. }
                | AgentEvent::Retry { .. }
                | AgentEvent::ProgressMessage { .. }
        )
    }
}
