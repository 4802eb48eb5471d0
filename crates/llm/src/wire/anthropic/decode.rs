//! Decoding of complete responses.

use super::super::body::{arguments_from_value, open_struct, parse};
use super::super::leftover::{indexed, insert_list, leftovers};
use super::super::lenient::{Lenient, Text};
use super::super::{DecodeError, Wire};
use super::{MessageUsage, finish};
use crate::failure::Failure;
use bakeoff_core::{Content, FinishReason, Response, ToolCall, Usage};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

open_struct! {
    MessageBody<'a> {
        id: Text<'a> = "id",
        model: Text<'a> = "model",
        content: &'a RawValue = "content",
        stop_reason: Text<'a> = "stop_reason",
        usage: Lenient<MessageUsage> = "usage",
        error: Value = "error",
    }
    ignored: ["type", "role"]
}

open_struct! {
    Block<'a> {
        kind: Text<'a> = "type",
        text: Text<'a> = "text",
        thinking: Text<'a> = "thinking",
        signature: Text<'a> = "signature",
        id: Text<'a> = "id",
        name: Text<'a> = "name",
        input: Value = "input",
    }
    ignored: []
}

/// A content block and the members that it does not represent, such as citations.
pub(super) type DecodedBlock = (Content, Map<String, Value>);

pub(in crate::wire) fn decode(body: &[u8]) -> Result<Response, DecodeError> {
    let parsed: MessageBody<'_> = parse(body)?;
    if let Some(error) = parsed.error.filter(|error| !error.is_null()) {
        return Err(DecodeError::Provider(Failure::from_error_object(Wire::Anthropic, &error)));
    }
    // Null content has no blocks, and some servers send plain text. Without a list of blocks, stop reason and
    // usage, the body may be anything.
    let has_blocks = parsed.content.is_some_and(|content| content.get().starts_with('['));
    if !has_blocks && parsed.stop_reason.is_none() && parsed.usage.is_none() {
        return Err(DecodeError::malformed("no list of blocks in `content`", body));
    }
    let (mut content, mut rest) = (Vec::new(), Vec::new());
    for (raw, index) in blocks(parsed.content)?.into_iter().zip(0..) {
        let (block, block_rest) = decode_block(raw)?;
        content.push(block);
        rest.extend(indexed(index, block_rest));
    }
    let mut extra = parsed.extra;
    insert_list(&mut extra, "content", rest);
    let mut usage = Usage::default();
    parsed.usage.unwrap_or_default().0.update(&mut usage);
    Ok(Response {
        id: parsed.id.and_then(Text::non_empty),
        model: parsed.model.and_then(Text::non_empty),
        content,
        finish: parsed
            .stop_reason
            .and_then(Text::non_empty)
            .map_or_else(|| FinishReason::Other("missing".to_owned()), |reason| finish(&reason)),
        usage: usage.plausible().unwrap_or_default(),
        extra,
    })
}

/// Returns the content blocks; a value that is no list is the only block.
fn blocks(content: Option<&RawValue>) -> Result<Vec<&RawValue>, DecodeError> {
    match content {
        None => Ok(Vec::new()),
        Some(raw) if raw.get().starts_with('[') => parse(raw.get().as_bytes()),
        Some(raw) => Ok(vec![raw]),
    }
}

/// Decodes a content block, of a complete response or from the start event of a block in a stream.
pub(super) fn decode_block(raw: &RawValue) -> Result<DecodedBlock, DecodeError> {
    let json = raw.get().as_bytes();
    if !raw.get().starts_with('{') {
        return Ok((
            match parse(json)? {
                Value::String(text) => Content::Text { text },
                value => Content::Opaque { value },
            },
            Map::new(),
        ));
    }
    let block: Block<'_> = parse(json)?;
    let owned = |text: Option<Text<'_>>| text.map(Text::into_owned).unwrap_or_default();
    let content = match block.kind.as_ref().map_or("", |kind| kind.0.as_ref()) {
        "text" => {
            let text = owned(block.text);
            return Ok((Content::Text { text }, leftovers(block.extra, &[])));
        }
        "thinking" => Content::Thinking {
            text: owned(block.thinking),
            signature: block.signature.and_then(Text::non_empty),
        },
        "tool_use" => Content::ToolCall(ToolCall {
            id: owned(block.id),
            name: owned(block.name),
            arguments: arguments_from_value(block.input),
        }),
        _ => Content::Opaque { value: parse(json)? },
    };
    Ok((content, Map::new()))
}
