//! Whole answers.

use super::super::body::{open_struct, parse};
use super::super::{DecodeError, Wire};
use super::{MessageUsage, finish};
use crate::failure::Failure;
use bakeoff_core::{Content, FinishReason, Response, ToolCall, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

open_struct! {
    Answer<'a> {
        id: String = "id",
        model: String = "model",
        content: Vec<&'a RawValue> = "content",
        stop_reason: Cow<'a, str> = "stop_reason",
        usage: MessageUsage = "usage",
        error: Value = "error",
    }
    ignored: ["type", "role"]
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
}

pub(in crate::wire) fn decode(body: &[u8]) -> Result<Response, DecodeError> {
    let answer: Answer<'_> = parse(body)?;
    if let Some(error) = answer.error.filter(|error| !error.is_null()) {
        return Err(DecodeError::Provider(Failure::inside(Wire::Anthropic, &error)));
    }
    let blocks =
        answer.content.ok_or_else(|| DecodeError::malformed("`content` is missing", body))?;
    let mut usage = Usage::default();
    answer.usage.unwrap_or_default().update(&mut usage);
    Ok(Response {
        id: answer.id,
        model: answer.model,
        content: blocks.into_iter().map(content).collect::<Result<_, _>>()?,
        finish: answer
            .stop_reason
            .map_or_else(|| FinishReason::Other("missing".to_owned()), |reason| finish(&reason)),
        usage,
        extra: answer.extra,
    })
}

/// One block, of the answer or as the start of one in a stream.
pub(super) fn content(raw: &RawValue) -> Result<Content, DecodeError> {
    let json = raw.get().as_bytes();
    let block: Block<'_> = parse(json)?;
    Ok(match block.r#type.as_ref() {
        "text" => Content::Text { text: block.text.unwrap_or_default() },
        "thinking" => Content::Thinking {
            text: block.thinking.unwrap_or_default(),
            signature: block.signature.filter(|signature| !signature.is_empty()),
        },
        "tool_use" => Content::ToolCall(ToolCall {
            id: block.id.unwrap_or_default(),
            name: block.name.unwrap_or_default(),
            arguments: block.input.unwrap_or_else(|| Value::Object(Map::new())),
        }),
        _ => Content::Opaque { value: parse(json)? },
    })
}
