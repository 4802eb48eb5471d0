//! Whole answers.

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
    /// Where a gateway puts the failure of its upstream.
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChatMessage<'a> {
    content: Option<MessageContent>,
    refusal: Option<String>,
    /// DeepSeek, Qwen, older vLLM.
    reasoning_content: Option<String>,
    /// OpenRouter, Groq, newer vLLM.
    reasoning: Option<String>,
    reasoning_details: Option<Value>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

/// Text, or Mistral's list of text and thinking.
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

/// JSON in a string as OpenAI sends it, or, from some servers, the JSON itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arguments<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Json(Value),
}

impl MessageContent {
    /// The thinking and the text of it.
    pub(super) fn split(self) -> (String, String) {
        let parts = match self {
            MessageContent::Text(text) => return (String::new(), text),
            MessageContent::Parts(parts) => parts,
        };
        let (mut thinking, mut said) = (String::new(), String::new());
        for part in parts {
            let is_thinking = part.r#type.as_deref() == Some("thinking");
            let to = if is_thinking { &mut thinking } else { &mut said };
            to.push_str(part.text.as_deref().unwrap_or_default());
            for thought in part.thinking.into_iter().flatten() {
                thinking.push_str(thought.text.as_deref().unwrap_or_default());
            }
        }
        (thinking, said)
    }
}

/// The details of reasoning, kept as the message field that they came in.
pub(super) fn reasoning_details(details: Value) -> Content {
    Content::Opaque { value: json!({"reasoning_details": details}) }
}

pub(in crate::wire) fn decode(body: &[u8]) -> Result<Response, DecodeError> {
    let completion: Completion<'_> = parse(body)?;
    let provider = |error: &Value| DecodeError::Provider(Failure::inside(Wire::OpenAiChat, error));
    if let Some(error) = completion.error.filter(|error| !error.is_null()) {
        return Err(provider(&error));
    }
    let missing = |what: &str| DecodeError::malformed(format!("{what} is missing"), body);
    let choices = completion.choices.ok_or_else(|| missing("`choices`"))?;
    let choice = choices.into_iter().next().ok_or_else(|| missing("`choices[0]`"))?;
    if let Some(error) = choice.error.filter(|error| !error.is_null()) {
        return Err(provider(&error));
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
    // A refusal is what the model said; the format only files it elsewhere.
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
            id: call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| made_up_id(index)),
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

/// An id for a call of a server that gives none.
pub(super) fn made_up_id(index: usize) -> String {
    format!("call_{index}")
}
