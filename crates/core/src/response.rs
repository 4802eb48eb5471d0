//! Responses of a model.

use crate::{Content, Message, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Complete response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Id of the response at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the model reported by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Text, thinking and tool calls in the model's order.
    pub content: Vec<Content>,
    /// Reason for the end of the response.
    pub finish: FinishReason,
    /// Tokens consumed.
    pub usage: Usage,
    /// Fields of the provider's body that the other fields do not represent, at their original paths. Members
    /// of lists are left out when nothing remains of them, and have an `index`: log probabilities of Chat
    /// Completions are in `choices[].logprobs`, together with all further choices.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Response {
    /// Returns the concatenated text parts.
    pub fn text(&self) -> String {
        Content::join_text(&self.content)
    }

    /// Returns the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Content::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Converts the response to the next message of the conversation.
    pub fn into_message(self) -> Message {
        Message::Assistant { content: self.content }
    }
}

/// Reason for the end of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The answer is complete, or reached a stop text.
    Stop,
    /// The maximum number of tokens was reached.
    Length,
    /// The model requested tool calls.
    ToolCalls,
    /// The provider filtered the content.
    ContentFilter,
    /// Another reason of the provider.
    Other(String),
}
