//! Decoding of complete responses.

use super::super::body::{arguments_from_text, open_struct, parse};
use super::super::{DecodeError, Wire};
use super::{ChatUsage, finish};
use crate::failure::Failure;
use bakeoff_core::{Content, FinishReason, Response, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

open_struct! {
    Completion<'a> {
        id: String = "id",
        model: String = "model",
        choices: Vec<Choice<'a>> = "choices",
        usage: ChatUsage = "usage",
        error: Value = "error",
    }
    ignored: []
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    message: Option<ChatMessage<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
    /// Upstream error reported by a gateway.
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    content: Option<MessageContent>,
    refusal: Option<String>,
    /// Used by DeepSeek, Qwen and older vLLM.
    reasoning_content: Option<String>,
    /// Used by OpenRouter, Groq and newer vLLM.
    reasoning: Option<String>,
    reasoning_details: Option<Value>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

/// Plain text, or Mistral's list of text and thinking parts.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum MessageContent {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
pub(super) struct Part {
    r#type: Option<String>,
    text: Option<String>,
    thinking: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Option<CallFunction<'a>>,
}

#[derive(Deserialize)]
struct CallFunction<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

/// JSON as a string, as OpenAI sends it, or a JSON value, as some servers do.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arguments<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Json(Value),
}

impl MessageContent {
    /// Returns thinking and text.
    pub(super) fn split(self) -> (String, String) {
        let parts = match self {
            MessageContent::Text(text) => return (String::new(), text),
            MessageContent::Parts(parts) => parts,
        };
        let (mut thinking, mut text) = (String::new(), String::new());
        for part in parts {
            let is_thinking = part.r#type.as_deref() == Some("thinking");
            let target = if is_thinking { &mut thinking } else { &mut text };
            target.push_str(part.text.as_deref().unwrap_or_default());
            for thought in part.thinking.into_iter().flatten() {
                thinking.push_str(thought.text.as_deref().unwrap_or_default());
            }
        }
        (thinking, text)
    }
}

/// Wraps reasoning details as the message field that is sent back in later requests.
pub(super) fn reasoning_details(details: Value) -> Content {
    Content::Opaque { value: json!({"reasoning_details": details}) }
}

pub(in crate::wire) fn decode(body: &[u8]) -> Result<Response, DecodeError> {
    let completion: Completion<'_> = parse(body)?;
    let provider_error =
        |error: &Value| DecodeError::Provider(Failure::from_error_object(Wire::OpenAiChat, error));
    if let Some(error) = completion.error.filter(|error| !error.is_null()) {
        return Err(provider_error(&error));
    }
    let missing = |what: &str| DecodeError::malformed(format!("{what} is missing"), body);
    let choices = completion.choices.ok_or_else(|| missing("`choices`"))?;
    let choice = choices.into_iter().next().ok_or_else(|| missing("`choices[0]`"))?;
    if let Some(error) = choice.error.filter(|error| !error.is_null()) {
        return Err(provider_error(&error));
    }
    let message = choice.message.ok_or_else(|| missing("`choices[0].message`"))?;
    let content = content(message);
    let has_tool_calls = content.iter().any(|part| matches!(part, Content::ToolCall(_)));
    Ok(Response {
        id: completion.id,
        model: completion.model,
        finish: match choice.finish_reason {
            Some(reason) => finish(&reason, has_tool_calls),
            None => FinishReason::Other("missing".to_owned()),
        },
        content,
        usage: completion.usage.unwrap_or_default().usage(),
        extra: completion.extra,
    })
}

fn content(message: ChatMessage<'_>) -> Vec<Content> {
    let mut content = Vec::new();
    let (mut thinking, mut text) = message.content.map(MessageContent::split).unwrap_or_default();
    if let Some(reasoning) = message.reasoning_content.or(message.reasoning) {
        thinking.insert_str(0, &reasoning);
    }
    // A refusal is the text of the response in a separate field.
    if text.is_empty() {
        text = message.refusal.unwrap_or_default();
    }
    if !thinking.is_empty() {
        content.push(Content::Thinking { text: thinking, signature: None });
    }
    if let Some(details) = message.reasoning_details.filter(|details| !details.is_null()) {
        content.push(reasoning_details(details));
    }
    if !text.is_empty() {
        content.push(Content::Text { text });
    }
    for (index, call) in message.tool_calls.into_iter().flatten().enumerate() {
        let (name, arguments) = match call.function {
            Some(function) => (function.name, function.arguments),
            None => (None, None),
        };
        content.push(Content::ToolCall(ToolCall {
            id: call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| generated_id(index)),
            name: name.unwrap_or_default(),
            arguments: match arguments {
                Some(Arguments::Text(text)) => arguments_from_text(&text),
                Some(Arguments::Json(value)) => value,
                None => arguments_from_text(""),
            },
        }));
    }
    content
}

/// Returns an id for a tool call of a server that sends none.
pub(super) fn generated_id(index: usize) -> String {
    format!("call_{index}")
}
