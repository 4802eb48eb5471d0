//! The context of an agent: instructions, conversation and tools.

use super::session::Session;
use super::tool::Tool;
use bakeoff_core::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Context of an agent. Clones have a conversation of their own and share tools and session.
///
/// ```
/// use bakeoff_agent::{AgentContext, AgentMessage};
///
/// let context = AgentContext::default()
///     .with_system_prompt("Be concise.")
///     .with_messages(vec![AgentMessage::user("Hello")]);
/// assert!(!context.ends_on_assistant());
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AgentContext {
    /// Instructions; none if empty.
    pub system_prompt: String,
    /// The conversation so far.
    pub messages: Vec<AgentMessage>,
    /// Tools that the model may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Session of its loops.
    pub session: Session,
}

impl AgentContext {
    /// Sets the instructions.
    #[must_use]
    pub fn with_system_prompt(mut self, system_prompt: impl Into<String>) -> AgentContext {
        self.system_prompt = system_prompt.into();
        self
    }

    /// Sets the conversation so far.
    #[must_use]
    pub fn with_messages(mut self, messages: Vec<AgentMessage>) -> AgentContext {
        self.messages = messages;
        self
    }

    /// Sets the tools that the model may call.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Arc<dyn Tool>>) -> AgentContext {
        self.tools = tools;
        self
    }

    /// Sets the session of its loops.
    #[must_use]
    pub fn with_session(mut self, session: Session) -> AgentContext {
        self.session = session;
        self
    }

    /// Returns whether the last message is from the model, so that there is nothing to respond to.
    pub fn ends_on_assistant(&self) -> bool {
        let last = self.messages.iter().rev().find_map(AgentMessage::as_llm);
        matches!(last, Some(Message::Assistant { .. }))
    }
}

/// Entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentMessage {
    /// A message for or from the model.
    Llm(Message),
    /// Application data, which is not sent to the model.
    Extension(Extension),
}

/// Data that an application stores in a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// Kind of the data, defined by the application.
    pub kind: String,
    /// The data.
    pub data: Value,
}

impl AgentMessage {
    /// Returns a user message with one text.
    pub fn user(text: impl Into<String>) -> AgentMessage {
        AgentMessage::Llm(Message::user(text))
    }

    /// Returns the model message; `None` for application data.
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
