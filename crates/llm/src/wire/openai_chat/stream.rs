//! Decoding of streamed responses.

use super::super::body::{arguments_from_text, open_struct, parse};
use super::super::{Delta, StreamError, Wire};
use super::decode::{MessageContent, generated_id, reasoning_details};
use super::{ChatUsage, finish};
use crate::failure::Failure;
use crate::sse::SseEvent;
use bakeoff_core::{Content, Response, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

open_struct! {
    Chunk<'a> {
        id: Cow<'a, str> = "id",
        model: Cow<'a, str> = "model",
        choices: Vec<Choice<'a>> = "choices",
        usage: ChatUsage = "usage",
        error: Value = "error",
    }
    ignored: []
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    index: Option<u64>,
    delta: Option<ChoiceDelta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChoiceDelta<'a> {
    content: Option<MessageContent>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    reasoning_details: Option<Vec<Value>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<Cow<'a, str>>,
}

/// Response assembled so far.
#[derive(Debug, Default)]
pub(in crate::wire) struct StreamAssembler {
    id: Option<String>,
    model: Option<String>,
    text: String,
    thinking: String,
    details: Vec<Value>,
    calls: Vec<PartialCall>,
    finish_reason: Option<String>,
    is_done: bool,
    usage: Option<ChatUsage>,
    extra: Map<String, Value>,
}

/// Tool call assembled so far.
#[derive(Debug)]
struct PartialCall {
    /// Index sent by the server; some servers leave it out.
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl StreamAssembler {
    pub(in crate::wire) fn push(
        &mut self,
        event: &SseEvent,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StreamError> {
        if event.data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let chunk: Chunk<'_> = parse(event.data.as_bytes())?;
        let provider_error = |error: &Value| {
            Err(StreamError::Provider(Failure::from_error_object(Wire::OpenAiChat, error)))
        };
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return provider_error(&error);
        }
        if event.event.as_deref() == Some("error") {
            return provider_error(&Value::Object(chunk.extra));
        }
        let non_empty =
            |id: Option<Cow<'_, str>>| id.filter(|id| !id.is_empty()).map(Cow::into_owned);
        if self.id.is_none() {
            self.id = non_empty(chunk.id);
        }
        if self.model.is_none() {
            self.model = non_empty(chunk.model);
        }
        if chunk.usage.is_some() {
            self.usage = chunk.usage;
        }
        self.extra.extend(chunk.extra);
        for choice in chunk.choices.into_iter().flatten() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(error) = choice.error.filter(|error| !error.is_null()) {
                return provider_error(&error);
            }
            if let Some(delta) = choice.delta {
                self.push_delta(delta, deltas);
            }
            if let Some(reason) = choice.finish_reason {
                self.finish_reason = Some(reason.into_owned());
            }
        }
        Ok(())
    }

    fn push_delta(&mut self, delta: ChoiceDelta<'_>, deltas: &mut Vec<Delta>) {
        let (thinking, text) = delta.content.map(MessageContent::split).unwrap_or_default();
        let reasoning = delta.reasoning_content.or(delta.reasoning).unwrap_or_default();
        for fragment in [reasoning, thinking] {
            if !fragment.is_empty() {
                self.thinking.push_str(&fragment);
                deltas.push(Delta::Thinking(fragment));
            }
        }
        for fragment in [text, delta.refusal.unwrap_or_default()] {
            if !fragment.is_empty() {
                self.text.push_str(&fragment);
                deltas.push(Delta::Text(fragment));
            }
        }
        self.details.extend(delta.reasoning_details.into_iter().flatten());
        for call in delta.tool_calls.into_iter().flatten() {
            self.push_call(call, deltas);
        }
    }

    fn push_call(&mut self, delta: CallDelta<'_>, deltas: &mut Vec<Delta>) {
        let (name, arguments) = match delta.function {
            Some(function) => (function.name, function.arguments),
            None => (None, None),
        };
        let id = delta.id.filter(|id| !id.is_empty());
        let existing = match delta.index {
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index)),
            // Without an index, an id starts a new call, and anything else continues the last one.
            None if id.is_some() => None,
            None => self.calls.len().checked_sub(1),
        };
        let at = existing.unwrap_or_else(|| {
            let at = self.calls.len();
            let id = id.unwrap_or_else(|| generated_id(at));
            let name = name.unwrap_or_default();
            deltas.push(Delta::ToolCallStart { index: at, id: id.clone(), name: name.clone() });
            self.calls.push(PartialCall { index: delta.index, id, name, arguments: String::new() });
            at
        });
        if let Some(json) = arguments.filter(|json| !json.is_empty()) {
            self.calls[at].arguments.push_str(&json);
            deltas.push(Delta::ToolCallArguments { index: at, json: json.into_owned() });
        }
    }

    pub(in crate::wire) fn is_complete(&self) -> bool {
        self.is_done
    }

    pub(in crate::wire) fn finish(self) -> Result<Response, StreamError> {
        let reason = match self.finish_reason {
            Some(reason) => reason,
            None if self.is_done => "missing".to_owned(),
            None => return Err(StreamError::Truncated),
        };
        let has_calls = !self.calls.is_empty();
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            content.push(Content::Thinking { text: self.thinking, signature: None });
        }
        if !self.details.is_empty() {
            content.push(reasoning_details(Value::Array(self.details)));
        }
        if !self.text.is_empty() {
            content.push(Content::Text { text: self.text });
        }
        content.extend(self.calls.into_iter().map(|call| {
            Content::ToolCall(ToolCall {
                id: call.id,
                name: call.name,
                arguments: arguments_from_text(&call.arguments),
            })
        }));
        Ok(Response {
            id: self.id,
            model: self.model,
            content,
            finish: finish(&reason, has_calls),
            usage: self.usage.unwrap_or_default().usage(),
            extra: self.extra,
        })
    }
}
