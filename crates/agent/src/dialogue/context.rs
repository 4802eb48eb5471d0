//! What an agent knows: its instructions, the conversation so far and its tools.

use super::session::Session;
use super::tool::Tool;
use bakeoff_core::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// What an agent knows. Cloning copies the conversation and shares tools and session.
#[derive(Debug, Clone, Default)]
pub struct AgentContext {
    /// Its instructions; none when empty.
    pub system_prompt: String,
    /// The conversation so far.
    pub messages: Vec<AgentMessage>,
    /// What the model may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The session that its loops belong to.
    pub session: Session,
}

impl AgentContext {
    /// Whether the model spoke last, so that there is nothing to answer.
    pub fn ends_on_assistant(&self) -> bool {
        let last = self.messages.iter().rev().find_map(AgentMessage::as_llm);
        matches!(last, Some(Message::Assistant { .. }))
    }
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentMessage {
    /// A message that the model sees.
    Llm(Message),
    /// Something that belongs to the conversation and that the model never sees.
    Extension(Extension),
}

/// Something that an application keeps in a conversation for itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// What it is, in the application's words.
    pub kind: String,
    /// Whatever belongs to it.
    pub data: Value,
}

impl AgentMessage {
    /// A user message with one text.
    pub fn user(text: impl Into<String>) -> AgentMessage {
        AgentMessage::Llm(Message::user(text))
    }

    /// The message that the model sees, if it is one.
    pub fn as_llm(&self) -> Option<&Message> {
        match self {
            AgentMessage::Llm(message) => Some(message),
            AgentMessage::Extension(_) => None,
        }
    }
}

impl From<Message> for AgentMessage {
    fn from(message: Message) -> AgentMessage {
        AgentMessage::Llm(message)
    }
}
