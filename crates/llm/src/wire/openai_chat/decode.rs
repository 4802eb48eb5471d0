//! Decoding of complete responses.

use super::super::body::{arguments_from_value, open_struct, parse};
use super::super::leftover::{indexed, insert_list, leftovers};
use super::super::lenient::{Lenient, Text};
use super::super::{DecodeError, Wire};
use super::parts::ContentParts;
use super::{ChatUsage, finish};
use crate::failure::Failure;
use bakeoff_core::{Content, FinishReason, Response, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

open_struct! {
    Completion<'a> {
        id: Text<'a> = "id",
        model: Text<'a> = "model",
        choices: Vec<&'a RawValue> = "choices",
        usage: Lenient<ChatUsage> = "usage",
        error: Value = "error",
    }
    ignored: []
}

open_struct! {
    Choice<'a> {
        message: ChatMessage<'a> = "message",
        finish_reason: Text<'a> = "finish_reason",
        // Upstream error reported by a gateway.
        error: Value = "error",
    }
    ignored: ["index"]
}

open_struct! {
    ChatMessage<'a> {
        content: Value = "content",
        refusal: Text<'a> = "refusal",
        // Used by DeepSeek, Qwen and older vLLM.
        reasoning_content: Text<'a> = "reasoning_content",
        // Used by OpenRouter, Groq and newer vLLM.
        reasoning: Text<'a> = "reasoning",
        reasoning_details: Value = "reasoning_details",
        tool_calls: Vec<Call<'a>> = "tool_calls",
    }
    ignored: ["role"]
}

#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<CallFunction<'a>>,
}

#[derive(Deserialize)]
struct CallFunction<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    /// JSON as text, as OpenAI sends it, or a JSON value, as some servers do.
    arguments: Option<Value>,
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
    let (first, further) = choices.split_first().ok_or_else(|| missing("`choices[0]`"))?;
    let choice: Choice<'_> = parse(first.get().as_bytes())?;
    if let Some(error) = choice.error.filter(|error| !error.is_null()) {
        return Err(provider_error(&error));
    }
    let message = choice.message.ok_or_else(|| missing("`choices[0].message`"))?;
    let (content, message_rest) = content(message);
    let mut rest = leftovers(choice.extra, &[]);
    if !message_rest.is_empty() {
        rest.insert("message".to_owned(), Value::Object(message_rest));
    }
    let mut kept: Vec<Value> = indexed(0, rest).into_iter().collect();
    for raw in further {
        kept.push(parse(raw.get().as_bytes())?);
    }
    let mut extra = completion.extra;
    insert_list(&mut extra, "choices", kept);
    let has_tool_calls = content.iter().any(|part| matches!(part, Content::ToolCall(_)));
    Ok(Response {
        id: completion.id.and_then(Text::non_empty),
        model: completion.model.and_then(Text::non_empty),
        finish: match choice.finish_reason.and_then(Text::non_empty) {
            Some(reason) => finish(&reason, has_tool_calls),
            None => FinishReason::Other("missing".to_owned()),
        },
        content,
        usage: completion.usage.unwrap_or_default().0.usage(),
        extra,
    })
}

/// Returns the content of a message and the members that are not represented in it.
fn content(message: ChatMessage<'_>) -> (Vec<Content>, Map<String, Value>) {
    let mut content = Vec::new();
    let mut parts = ContentParts::from(message.content.unwrap_or_default());
    if let Some(reasoning) = message.reasoning_content.or(message.reasoning) {
        parts.thinking.insert_str(0, &reasoning.0);
    }
    // A refusal is the text of the response in a separate field.
    if parts.text.is_empty() {
        parts.text = message.refusal.map(Text::into_owned).unwrap_or_default();
    }
    if !parts.thinking.is_empty() {
        content.push(Content::Thinking { text: parts.thinking, signature: None });
    }
    if let Some(details) = message.reasoning_details.filter(|details| !details.is_null()) {
        content.push(reasoning_details(details));
    }
    if !parts.text.is_empty() {
        content.push(Content::Text { text: parts.text });
    }
    content.extend(parts.unknown.into_iter().map(|value| Content::Opaque { value }));
    for (index, call) in message.tool_calls.into_iter().flatten().enumerate() {
        let (name, arguments) = match call.function {
            Some(function) => (function.name, function.arguments),
            None => (None, None),
        };
        content.push(Content::ToolCall(ToolCall {
            id: call.id.and_then(Text::non_empty).unwrap_or_else(|| generated_id(index)),
            name: name.map(Text::into_owned).unwrap_or_default(),
            arguments: arguments_from_value(arguments),
        }));
    }
    (content, leftovers(message.extra, &[]))
}

/// Returns an id for a tool call of a server that sends none.
pub(super) fn generated_id(index: usize) -> String {
    format!("call_{index}")
}
