//! Decoding of complete responses.

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
    MessageBody<'a> {
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
    let parsed: MessageBody<'_> = parse(body)?;
    if let Some(error) = parsed.error.filter(|error| !error.is_null()) {
        return Err(DecodeError::Provider(Failure::from_error_object(Wire::Anthropic, &error)));
    }
    let blocks =
        parsed.content.ok_or_else(|| DecodeError::malformed("`content` is missing", body))?;
    let mut usage = Usage::default();
    parsed.usage.unwrap_or_default().update(&mut usage);
    Ok(Response {
        id: parsed.id,
        model: parsed.model,
        content: blocks.into_iter().map(content).collect::<Result<_, _>>()?,
        finish: parsed
            .stop_reason
            .map_or_else(|| FinishReason::Other("missing".to_owned()), |reason| finish(&reason)),
        usage,
        extra: parsed.extra,
    })
}

/// Decodes a content block, of a complete response or from the start event of a block in a stream.
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
