//! A conversation, in the words all providers share.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions from the application.
    System {
        /// What it says.
        content: Vec<Content>,
    },
    /// What the user says.
    User {
        /// What it says.
        content: Vec<Content>,
    },
    /// What the model said.
    Assistant {
        /// Text, thinking and tool calls in the order the model gave them.
        content: Vec<Content>,
    },
    /// The answer to one tool call.
    #[serde(rename = "tool")]
    ToolResult {
        /// Id of the [`ToolCall`] that this answers.
        tool_call_id: String,
        /// Name of the tool; Gemini pairs results by it.
        name: String,
        /// What the tool returned.
        content: Vec<Content>,
        /// The tool failed, and the content says why.
        #[serde(default)]
        is_error: bool,
    },
}

impl Message {
    /// A system message with one text.
    pub fn system(text: impl Into<String>) -> Self {
        Message::System { content: vec![Content::text(text)] }
    }

    /// A user message with one text.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { content: vec![Content::text(text)] }
    }

    /// An assistant message with one text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message::Assistant { content: vec![Content::text(text)] }
    }

    /// The parts of the message, whoever said it.
    pub fn content(&self) -> &[Content] {
        match self {
            Message::System { content }
            | Message::User { content }
            | Message::Assistant { content }
            | Message::ToolResult { content, .. } => content,
        }
    }

    /// The text parts joined; images, thinking and tool calls are left out.
    pub fn text(&self) -> String {
        Content::join_text(self.content())
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture for the model to look at.
    Image {
        /// Where its bytes are.
        source: ImageSource,
    },
    /// What the model thought before it answered.
    Thinking {
        /// The thought; empty when the provider hides it.
        text: String,
        /// The provider's proof that the thought is its own, to be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// The model wants a tool to run.
    ToolCall(ToolCall),
    /// A part of a kind that Bakeoff has no word for, kept so that it can be sent back as it came.
    Opaque {
        /// The provider's own JSON.
        value: Value,
    },
}

impl Content {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text { text: text.into() }
    }

    /// The text parts joined without a separator.
    pub fn join_text(parts: &[Content]) -> String {
        parts
            .iter()
            .filter_map(|part| match part {
                Content::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// Where the bytes of an image are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ImageSource {
    /// The provider fetches it.
    Url {
        /// Its address.
        url: String,
    },
    /// The bytes travel with the request.
    Base64 {
        /// Such as `image/png`.
        media_type: String,
        /// Standard base64 with padding.
        data: String,
    },
}

/// A tool call that the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Pairs the call with its result; made up by the adapter where the provider has none.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Its arguments. A string when the model wrote something that is not JSON.
    pub arguments: Value,
}
