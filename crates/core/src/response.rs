//! What one model answered.

use crate::{Content, Message, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One complete answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The provider's id of the answer, for its support desk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The model that the provider says it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Text, thinking and tool calls in the order the model gave them.
    pub content: Vec<Content>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What was consumed.
    pub usage: Usage,
    /// Top-level fields of the provider's body that Bakeoff has no word for.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Response {
    /// The text parts joined.
    pub fn text(&self) -> String {
        Content::join_text(&self.content)
    }

    /// The tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Content::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The answer as the next message of the conversation.
    pub fn into_message(self) -> Message {
        Message::Assistant { content: self.content }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had said everything, or reached a stop text.
    Stop,
    /// It reached the most tokens allowed.
    Length,
    /// It waits for tools.
    ToolCalls,
    /// The provider cut it off for its content.
    ContentFilter,
    /// A reason that Bakeoff has no word for.
    Other(String),
}
