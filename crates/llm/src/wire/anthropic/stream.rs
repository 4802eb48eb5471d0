//! Decoding of streamed responses.

use super::super::body::{arguments_from_text, open_struct, parse};
use super::super::leftover::{indexed, insert_list};
use super::super::lenient::{Count, Lenient, Text};
use super::super::{Delta, StreamError, Wire};
use super::decode::{DecodedBlock, decode_block};
use super::{MessageUsage, finish};
use crate::failure::Failure;
use crate::sse::SseEvent;
use bakeoff_core::{Content, FinishReason, Response, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    message: Option<MessageStart<'a>>,
    index: Option<Count>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    usage: Option<Lenient<MessageUsage>>,
    error: Option<Value>,
}

open_struct! {
    MessageStart<'a> {
        id: Text<'a> = "id",
        model: Text<'a> = "model",
        usage: Lenient<MessageUsage> = "usage",
    }
    ignored: ["type", "role", "content", "stop_reason"]
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    /// Fragment of JSON text, or the whole JSON value, as some servers send it.
    partial_json: Option<Value>,
    citation: Option<Value>,
}

open_struct! {
    MessageDelta<'a> {
        stop_reason: Text<'a> = "stop_reason",
    }
    ignored: []
}

/// Response assembled so far.
#[derive(Debug, Default)]
pub(in crate::wire) struct StreamAssembler {
    id: Option<String>,
    model: Option<String>,
    blocks: Vec<PartialBlock>,
    calls: usize,
    stop_reason: Option<String>,
    is_complete: bool,
    usage: Usage,
    extra: Map<String, Value>,
}

/// Content block assembled so far.
#[derive(Debug)]
struct PartialBlock {
    index: u64,
    content: Content,
    /// Members that the content does not represent, such as citations.
    rest: Map<String, Value>,
    /// Index among the tool calls.
    call: Option<usize>,
    /// JSON text of the input of a tool call.
    json: String,
}

impl StreamAssembler {
    pub(in crate::wire) fn push(
        &mut self,
        event: &SseEvent,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StreamError> {
        let parsed: Event<'_> = parse(event.data.as_bytes())?;
        let own_kind = parsed.r#type.as_ref().map(|kind| kind.0.as_ref());
        let kind = own_kind.or(event.event.as_deref()).unwrap_or_default();
        let index = parsed.index.unwrap_or_default().0;
        if kind == "error" || parsed.error.as_ref().is_some_and(|error| !error.is_null()) {
            let error = parsed.error.unwrap_or_default();
            return Err(StreamError::Provider(Failure::from_error_object(Wire::Anthropic, &error)));
        }
        if let Some(Lenient(usage)) = &parsed.usage {
            usage.update(&mut self.usage);
        }
        match (kind, parsed.delta) {
            ("message_start", _) => {
                let Some(start) = parsed.message else { return Ok(()) };
                start.usage.unwrap_or_default().0.update(&mut self.usage);
                self.id = start.id.and_then(Text::non_empty);
                self.model = start.model.and_then(Text::non_empty);
                self.extra.extend(start.extra);
            }
            ("content_block_start", _) => {
                if let Some(raw) = parsed.content_block {
                    self.start_block(index, decode_block(raw)?, deltas);
                }
            }
            ("content_block_delta", Some(raw)) => {
                let delta: BlockDelta<'_> = parse(raw.get().as_bytes())?;
                self.push_delta(index, delta, deltas);
            }
            ("message_delta", Some(raw)) => {
                let delta: MessageDelta<'_> = parse(raw.get().as_bytes())?;
                let reason = delta.stop_reason.and_then(Text::non_empty);
                self.stop_reason = reason.or(self.stop_reason.take());
                self.extra.extend(delta.extra);
            }
            ("message_stop", _) => self.is_complete = true,
            _ => {}
        }
        Ok(())
    }

    fn start_block(&mut self, index: u64, block: DecodedBlock, deltas: &mut Vec<Delta>) {
        let (content, rest) = block;
        let call = match &content {
            Content::ToolCall(call) => {
                deltas.push(Delta::ToolCallStart {
                    index: self.calls,
                    id: call.id.clone(),
                    name: call.name.clone(),
                });
                self.calls += 1;
                Some(self.calls - 1)
            }
            Content::Text { text } if !text.is_empty() => {
                deltas.push(Delta::Text(text.clone()));
                None
            }
            _ => None,
        };
        self.blocks.push(PartialBlock { index, content, rest, call, json: String::new() });
    }

    fn push_delta(&mut self, index: u64, delta: BlockDelta<'_>, deltas: &mut Vec<Delta>) {
        if !self.blocks.iter().rev().any(|block| block.index == index) {
            // Some servers leave out the start of a block.
            let content = match &delta {
                BlockDelta { text: Some(_), .. } => Content::text(""),
                BlockDelta { thinking: Some(_), .. } => {
                    Content::Thinking { text: String::new(), signature: None }
                }
                _ => return,
            };
            self.start_block(index, (content, Map::new()), deltas);
        }
        // The block is nearly always the last one.
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) else {
            return;
        };
        if let Some(citation) = delta.citation.filter(|citation| !citation.is_null())
            && let Value::Array(citations) =
                block.rest.entry("citations").or_insert_with(|| Value::Array(Vec::new()))
        {
            citations.push(citation);
        }
        match &mut block.content {
            Content::Text { text } => {
                if let Some(Text(fragment)) = delta.text {
                    text.push_str(&fragment);
                    deltas.push(Delta::Text(fragment.into_owned()));
                }
            }
            Content::Thinking { text, signature } => {
                if let Some(Text(fragment)) = delta.thinking {
                    text.push_str(&fragment);
                    deltas.push(Delta::Thinking(fragment.into_owned()));
                }
                if let Some(Text(fragment)) = delta.signature {
                    signature.get_or_insert_default().push_str(&fragment);
                }
            }
            // The input of server tools, which are opaque, is streamed too.
            Content::ToolCall(_)
            | Content::Opaque { .. }
            | Content::Image { .. }
            | Content::File { .. } => {
                let json = match delta.partial_json {
                    None | Some(Value::Null) => return,
                    Some(Value::String(fragment)) => fragment,
                    Some(value) => value.to_string(),
                };
                block.json.push_str(&json);
                if let Some(index) = block.call.filter(|_| !json.is_empty()) {
                    deltas.push(Delta::ToolCallArguments { index, json });
                }
            }
        }
    }

    pub(in crate::wire) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(in crate::wire) fn finish(self) -> Result<Response, StreamError> {
        if !self.is_complete {
            return Err(StreamError::Truncated);
        }
        let (mut content, mut rest, mut extra) = (Vec::new(), Vec::new(), self.extra);
        for (mut block, index) in self.blocks.into_iter().zip(0..) {
            rest.extend(indexed(index, std::mem::take(&mut block.rest)));
            content.push(block.finish());
        }
        insert_list(&mut extra, "content", rest);
        Ok(Response {
            id: self.id,
            model: self.model,
            content,
            finish: match self.stop_reason {
                Some(reason) => finish(&reason),
                None => FinishReason::Other("missing".to_owned()),
            },
            usage: self.usage.plausible().unwrap_or_default(),
            extra,
        })
    }
}

impl PartialBlock {
    fn finish(mut self) -> Content {
        if !self.json.is_empty() {
            let input = arguments_from_text(&self.json);
            match &mut self.content {
                Content::ToolCall(call) => call.arguments = input,
                Content::Opaque { value: Value::Object(fields) } => {
                    fields.insert("input".to_owned(), input);
                }
                _ => {}
            }
        }
        self.content
    }
}
