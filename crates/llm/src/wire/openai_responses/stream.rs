//! Decoding of streamed responses.
//!
//! The last event contains the complete response, so earlier events only produce deltas.

use super::super::body::parse;
use super::super::lenient::{Count, Text};
use super::super::{Delta, StreamError, Wire};
use super::decode::decode_with;
use crate::failure::Failure;
use crate::sse::SseEvent;
use bakeoff_core::Response;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    delta: Option<Value>,
    output_index: Option<Count>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallItem<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    #[serde(borrow)]
    call_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
}

/// Response assembled so far.
#[derive(Debug, Default)]
pub(in crate::wire) struct StreamAssembler {
    /// Completed items, for servers that leave them out of the last event.
    items: Vec<Box<RawValue>>,
    /// Output indexes of the tool calls.
    calls: Vec<u64>,
    response: Option<Response>,
}

impl StreamAssembler {
    pub(in crate::wire) fn push(
        &mut self,
        event: &SseEvent,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StreamError> {
        // Some servers end with the terminal event of Chat Completions.
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let data = event.data.as_bytes();
        let parsed: Event<'_> = parse(data)?;
        let fragment = || match &parsed.delta {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
        };
        let own_kind = parsed.r#type.as_ref().map(|kind| kind.0.as_ref());
        let kind = own_kind.or(event.event.as_deref()).unwrap_or_default();
        let output_index = parsed.output_index.unwrap_or_default().0;
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                deltas.push(Delta::Text(fragment()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas.push(Delta::Thinking(fragment()));
            }
            "response.function_call_arguments.delta" => {
                if let Some(index) = self.calls.iter().position(|&call| call == output_index) {
                    deltas.push(Delta::ToolCallArguments { index, json: fragment() });
                }
            }
            "response.output_item.added" => {
                let Some(raw) = parsed.item else { return Ok(()) };
                let call: CallItem<'_> = parse(raw.get().as_bytes())?;
                if call.r#type.is_some_and(|kind| kind.0 == "function_call") {
                    deltas.push(Delta::ToolCallStart {
                        index: self.calls.len(),
                        id: call.call_id.map(Text::into_owned).unwrap_or_default(),
                        name: call.name.map(Text::into_owned).unwrap_or_default(),
                    });
                    self.calls.push(output_index);
                }
            }
            "response.output_item.done" => self.items.extend(parsed.item.map(ToOwned::to_owned)),
            "response.completed" | "response.incomplete" => {
                let body = parsed.response.map_or(data, |response| response.get().as_bytes());
                self.response = Some(decode_with(body, &self.items)?);
            }
            "response.failed" => {
                return Err(provider_error(
                    parsed.response.map_or(data, |body| body.get().as_bytes()),
                )?);
            }
            "error" => return Err(provider_error(data)?),
            _ => {}
        }
        Ok(())
    }

    pub(in crate::wire) fn is_complete(&self) -> bool {
        self.response.is_some()
    }

    pub(in crate::wire) fn finish(self) -> Result<Response, StreamError> {
        self.response.ok_or(StreamError::Truncated)
    }
}

/// Decodes an error event.
fn provider_error(body: &[u8]) -> Result<StreamError, StreamError> {
    let error: Value = parse(body)?;
    Ok(StreamError::Provider(Failure::from_error_object(Wire::OpenAiResponses, &error)))
}
