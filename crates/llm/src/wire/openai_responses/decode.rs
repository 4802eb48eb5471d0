//! Decoding of complete responses.

use super::super::body::{arguments_from_value, open_struct, parse};
use super::super::leftover::{indexed, insert_list, is_blank, leftovers};
use super::super::lenient::{Count, Lenient, Text, plausible};
use super::super::{DecodeError, Wire};
use super::phase_marker;
use crate::failure::Failure;
use bakeoff_core::{Content, FinishReason, Response, ToolCall, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

open_struct! {
    ResponseBody<'a> {
        id: Text<'a> = "id",
        model: Text<'a> = "model",
        status: Text<'a> = "status",
        incomplete_details: Lenient<Incomplete> = "incomplete_details",
        error: Value = "error",
        output: Vec<&'a RawValue> = "output",
        usage: Lenient<ResponseUsage> = "usage",
    }
    // Echoes of the request, which may be large.
    ignored: ["instructions", "tools", "tool_choice", "text", "prompt", "input"]
}

#[derive(Default, Deserialize)]
pub(super) struct Incomplete {
    reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseUsage {
    input_tokens: Count,
    input_tokens_details: Option<Lenient<InputDetails>>,
    output_tokens: Count,
    output_tokens_details: Option<Lenient<OutputDetails>>,
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
        let of_input = self.input_tokens_details.as_ref().map(|details| &details.0);
        let of_output = self.output_tokens_details.as_ref().map(|details| &details.0);
        let counts = [
            self.input_tokens,
            self.output_tokens,
            of_input.map_or(Count(0), |details| details.cached_tokens),
            of_input.map_or(Count(0), |details| details.cache_write_tokens),
            of_output.map_or(Count(0), |details| details.reasoning_tokens),
        ];
        plausible(&counts, || self.plausible_usage())
    }

    fn plausible_usage(&self) -> Usage {
        let details = self.input_tokens_details.as_ref();
        let cache_read =
            details.map_or(0, |details| details.0.cached_tokens.0).min(self.input_tokens.0);
        let cache_write = details.map_or(0, |details| details.0.cache_write_tokens.0);
        let details = self.output_tokens_details.as_ref();
        Usage {
            input: self.input_tokens.0.saturating_sub(cache_read).saturating_sub(cache_write),
            output: self.output_tokens.0,
            cache_read,
            cache_write,
            reasoning: details.map_or(0, |details| details.0.reasoning_tokens.0),
        }
    }
}

/// Item of the output.
#[derive(Deserialize)]
struct Item<'a> {
    content: Option<Value>,
    summary: Option<Value>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    call_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    /// JSON as text, or a JSON value, as some servers send it.
    arguments: Option<Value>,
    #[serde(borrow)]
    phase: Option<Text<'a>>,
}

/// Decoder of the items of the output.
#[derive(Default)]
struct ItemDecoder {
    content: Vec<Content>,
    /// Members that the content does not represent, such as annotations.
    rest: Vec<Value>,
    items: u64,
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
    let status = parsed.status.and_then(Text::non_empty);
    // A null output has no items. Without a status, the body may be anything.
    if parsed.output.is_none() && status.is_none() {
        return Err(DecodeError::malformed("`output` is missing", body));
    }
    let output = parsed.output.unwrap_or_default();
    let mut decoder = ItemDecoder::default();
    if output.is_empty() {
        for raw in items {
            decoder.push(raw)?;
        }
    }
    for raw in output {
        decoder.push(raw)?;
    }
    let ItemDecoder { content, rest, .. } = decoder;
    let has_tool_calls = content.iter().any(|part| matches!(part, Content::ToolCall(_)));
    let reason = parsed.incomplete_details.and_then(|details| details.0.reason);
    let finish = match (status.as_deref(), reason.as_deref()) {
        (Some("incomplete"), Some("max_output_tokens")) => FinishReason::Length,
        (Some("incomplete"), Some("content_filter")) => FinishReason::ContentFilter,
        (Some("incomplete"), Some(other)) => FinishReason::Other(other.to_owned()),
        // Some compatible servers leave the status out.
        (Some("completed") | None, _) if has_tool_calls => FinishReason::ToolCalls,
        (Some("completed") | None, _) => FinishReason::Stop,
        (Some(other), _) => FinishReason::Other(other.to_owned()),
    };
    let mut extra = parsed.extra;
    insert_list(&mut extra, "output", rest);
    Ok(Response {
        id: parsed.id.and_then(Text::non_empty),
        model: parsed.model.and_then(Text::non_empty),
        content,
        finish,
        usage: parsed.usage.unwrap_or_default().0.usage(),
        extra,
    })
}

impl ItemDecoder {
    fn push(&mut self, raw: &RawValue) -> Result<(), DecodeError> {
        let index = self.items;
        self.items += 1;
        let json = raw.get().as_bytes();
        let Lenient(kind) = parse::<Lenient<ItemKind>>(json)?;
        match kind.r#type.as_deref() {
            Some("message") => self.push_message(index, parse(json)?),
            Some("function_call") => {
                let item: Item<'_> = parse(json)?;
                let id = item.call_id.and_then(Text::non_empty);
                self.content.push(Content::ToolCall(ToolCall {
                    id: id.or_else(|| item.id.and_then(Text::non_empty)).unwrap_or_default(),
                    name: item.name.map(Text::into_owned).unwrap_or_default(),
                    arguments: arguments_from_value(item.arguments),
                }));
            }
            Some("reasoning") => {
                let item: Item<'_> = parse(json)?;
                let thoughts = [item.summary, item.content].into_iter().flatten().flat_map(parts);
                let texts = thoughts.filter_map(|part| part["text"].as_str().map(str::to_owned));
                let text = texts.collect::<Vec<_>>().join("\n\n");
                if !text.is_empty() {
                    self.content.push(Content::Thinking { text, signature: None });
                }
                // The whole item, with its id and encrypted content, is sent back in later requests.
                self.content.push(opaque(json)?);
            }
            _ => self.content.push(opaque(json)?),
        }
        Ok(())
    }

    fn push_message(&mut self, index: u64, item: Item<'_>) {
        if let Some(phase) = item.phase.and_then(Text::non_empty) {
            self.content.push(phase_marker(&phase));
        }
        let mut rest = Vec::new();
        for (part, number) in item.content.map(parts).unwrap_or_default().into_iter().zip(0..) {
            // A refusal is the text of the response in a separate field.
            let text = ["text", "refusal"].iter().find_map(|name| part[*name].as_str());
            match (text, &part) {
                (Some(text), _) => {
                    self.content.push(Content::text(text));
                    if let Value::Object(fields) = part {
                        let known = ["type", "text", "refusal", "index"];
                        rest.extend(indexed(number, leftovers(fields, &known)));
                    }
                }
                (None, Value::String(text)) => self.content.push(Content::text(text.as_str())),
                // Parts of unknown types.
                (None, _) if !is_blank(&part) => rest.push(part),
                (None, _) => {}
            }
        }
        let mut message = Map::new();
        insert_list(&mut message, "content", rest);
        self.rest.extend(indexed(index, message));
    }
}

#[derive(Default, Deserialize)]
struct ItemKind {
    r#type: Option<String>,
}

/// Keeps an item that is sent back in later requests, in which the API rejects members that are null.
fn opaque(json: &[u8]) -> Result<Content, DecodeError> {
    let mut value: Value = parse(json)?;
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, member| !member.is_null());
    }
    Ok(Content::Opaque { value })
}

/// Returns the parts of a message or summary; some servers send plain text.
fn parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        Value::Null => Vec::new(),
        Value::String(text) => vec![serde_json::json!({"type": "output_text", "text": text})],
        part => vec![part],
    }
}
