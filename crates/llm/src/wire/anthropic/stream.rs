//! Decoding of streamed responses.

use super::super::body::{arguments_from_text, open_struct, parse};
use super::super::{Delta, StreamError, Wire};
use super::decode::content;
use super::{MessageUsage, finish};
use crate::failure::Failure;
use crate::sse::SseEvent;
use bakeoff_core::{Content, FinishReason, Response, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Option<Cow<'a, str>>,
    message: Option<MessageStart<'a>>,
    index: Option<u64>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    usage: Option<MessageUsage>,
    error: Option<Value>,
}

open_struct! {
    MessageStart<'a> {
        id: String = "id",
        model: String = "model",
        usage: MessageUsage = "usage",
    }
    ignored: ["type", "role", "content", "stop_reason"]
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
}

open_struct! {
    MessageDelta<'a> {
        stop_reason: Cow<'a, str> = "stop_reason",
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
        let kind = parsed.r#type.as_deref().or(event.event.as_deref()).unwrap_or_default();
        if kind == "error" || parsed.error.as_ref().is_some_and(|error| !error.is_null()) {
            let error = parsed.error.unwrap_or_default();
            return Err(StreamError::Provider(Failure::from_error_object(Wire::Anthropic, &error)));
        }
        if let Some(usage) = &parsed.usage {
            usage.update(&mut self.usage);
        }
        match (kind, parsed.delta) {
            ("message_start", _) => {
                let Some(start) = parsed.message else { return Ok(()) };
                start.usage.unwrap_or_default().update(&mut self.usage);
                (self.id, self.model) = (start.id, start.model);
                self.extra.extend(start.extra);
            }
            ("content_block_start", _) => {
                if let Some(raw) = parsed.content_block {
                    self.start_block(parsed.index.unwrap_or_default(), content(raw)?, deltas);
                }
            }
            ("content_block_delta", Some(raw)) => {
                let delta: BlockDelta<'_> = parse(raw.get().as_bytes())?;
                self.push_delta(parsed.index.unwrap_or_default(), delta, deltas);
            }
            ("message_delta", Some(raw)) => {
                let delta: MessageDelta<'_> = parse(raw.get().as_bytes())?;
                if let Some(reason) = delta.stop_reason {
                    self.stop_reason = Some(reason.into_owned());
                }
                self.extra.extend(delta.extra);
            }
            ("message_stop", _) => self.is_complete = true,
            _ => {}
        }
        Ok(())
    }

    fn start_block(&mut self, index: u64, content: Content, deltas: &mut Vec<Delta>) {
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
        self.blocks.push(PartialBlock { index, content, call, json: String::new() });
    }

    fn push_delta(&mut self, index: u64, delta: BlockDelta<'_>, deltas: &mut Vec<Delta>) {
        // The block is nearly always the last one.
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) else {
            return;
        };
        match &mut block.content {
            Content::Text { text } => {
                if let Some(fragment) = delta.text {
                    text.push_str(&fragment);
                    deltas.push(Delta::Text(fragment));
                }
            }
            Content::Thinking { text, signature } => {
                if let Some(fragment) = delta.thinking {
                    text.push_str(&fragment);
                    deltas.push(Delta::Thinking(fragment));
                }
                if let Some(fragment) = delta.signature {
                    signature.get_or_insert_default().push_str(&fragment);
                }
            }
            // The input of server tools, which are opaque, is streamed too.
            Content::ToolCall(_) | Content::Opaque { .. } | Content::Image { .. } => {
                if let Some(fragment) = delta.partial_json {
                    block.json.push_str(&fragment);
                    if let Some(index) = block.call.filter(|_| !fragment.is_empty()) {
                        deltas
                            .push(Delta::ToolCallArguments { index, json: fragment.into_owned() });
                    }
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
        Ok(Response {
            id: self.id,
            model: self.model,
            content: self.blocks.into_iter().map(PartialBlock::finish).collect(),
            finish: match self.stop_reason {
                Some(reason) => finish(&reason),
                None => FinishReason::Other("missing".to_owned()),
            },
            usage: self.usage,
            extra: self.extra,
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
