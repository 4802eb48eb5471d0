//! Decoding of complete responses.

use super::super::body::{Count, arguments_from_text, open_struct, parse};
use super::super::{DecodeError, Wire};
use crate::failure::Failure;
use bakeoff_core::{Content, FinishReason, Response, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

open_struct! {
    ResponseBody<'a> {
        id: String = "id",
        model: String = "model",
        status: Cow<'a, str> = "status",
        incomplete_details: Incomplete = "incomplete_details",
        error: Value = "error",
        output: Vec<&'a RawValue> = "output",
        usage: ResponseUsage = "usage",
    }
    // Echoes of the request, which may be large.
    ignored: ["instructions", "tools", "tool_choice", "text", "prompt", "input"]
}

#[derive(Deserialize)]
pub(super) struct Incomplete {
    reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseUsage {
    input_tokens: Count,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Count,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}

impl ResponseUsage {
    fn usage(&self) -> Usage {
        let details = self.input_tokens_details.as_ref();
        let cache_read =
            details.map_or(0, |details| details.cached_tokens.0).min(self.input_tokens.0);
        let cache_write = details.map_or(0, |details| details.cache_write_tokens.0);
        let details = self.output_tokens_details.as_ref();
        Usage {
            input: self.input_tokens.0.saturating_sub(cache_read).saturating_sub(cache_write),
            output: self.output_tokens.0,
            cache_read,
            cache_write,
            reasoning: details.map_or(0, |details| details.reasoning_tokens.0),
        }
    }
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    content: Option<Vec<Part>>,
    summary: Option<Vec<Part>>,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    refusal: Option<String>,
}

pub(in crate::wire) fn decode(body: &[u8]) -> Result<Response, DecodeError> {
    decode_with(body, &[])
}

/// Decodes a response. `items` replace an empty output: some servers send the items earlier in the stream and
/// leave them out at its end.
pub(super) fn decode_with(body: &[u8], items: &[Box<RawValue>]) -> Result<Response, DecodeError> {
    let parsed: ResponseBody<'_> = parse(body)?;
    if let Some(error) = parsed.error.filter(|error| !error.is_null()) {
        return Err(DecodeError::Provider(Failure::from_error_object(
            Wire::OpenAiResponses,
            &error,
        )));
    }
    let missing = |what: &str| DecodeError::malformed(format!("{what} is missing"), body);
    let output = parsed.output.ok_or_else(|| missing("`output`"))?;
    let mut content = Vec::with_capacity(output.len());
    if output.is_empty() {
        for raw in items {
            push_item(raw, &mut content)?;
        }
    }
    for raw in output {
        push_item(raw, &mut content)?;
    }
    let has_tool_calls = content.iter().any(|part| matches!(part, Content::ToolCall(_)));
    let reason = parsed.incomplete_details.and_then(|details| details.reason);
    let finish = match (parsed.status.as_deref(), reason.as_deref()) {
        (Some("incomplete"), Some("max_output_tokens")) => FinishReason::Length,
        (Some("incomplete"), Some("content_filter")) => FinishReason::ContentFilter,
        (Some("incomplete"), Some(other)) => FinishReason::Other(other.to_owned()),
        // Some compatible servers leave the status out.
        (Some("completed") | None, _) if has_tool_calls => FinishReason::ToolCalls,
        (Some("completed") | None, _) => FinishReason::Stop,
        (Some(other), _) => FinishReason::Other(other.to_owned()),
    };
    Ok(Response {
        id: parsed.id,
        model: parsed.model,
        content,
        finish,
        usage: parsed.usage.unwrap_or_default().usage(),
        extra: parsed.extra,
    })
}

fn push_item(raw: &RawValue, content: &mut Vec<Content>) -> Result<(), DecodeError> {
    let item: Item<'_> = parse(raw.get().as_bytes())?;
    let opaque = || parse(raw.get().as_bytes()).map(|value| Content::Opaque { value });
    match item.r#type.as_ref() {
        "message" => {
            // A refusal is the text of the response in a separate field.
            let texts = item.content.into_iter().flatten();
            content.extend(
                texts
                    .filter_map(|part| part.text.or(part.refusal))
                    .map(|text| Content::Text { text }),
            );
        }
        "function_call" => content.push(Content::ToolCall(ToolCall {
            id: item.call_id.or(item.id).unwrap_or_default(),
            name: item.name.unwrap_or_default(),
            arguments: arguments_from_text(item.arguments.as_deref().unwrap_or_default()),
        })),
        "reasoning" => {
            let thoughts = item.summary.into_iter().chain(item.content).flatten();
            let text = thoughts.filter_map(|part| part.text).collect::<Vec<_>>().join("\n\n");
            if !text.is_empty() {
                content.push(Content::Thinking { text, signature: None });
            }
            content.push(opaque()?);
        }
        _ => content.push(opaque()?),
    }
    Ok(())
}
