//! One choice of a streamed response.

use super::super::Delta;
use super::super::body::{arguments_from_text, open_struct};
use super::super::leftover::accumulate;
use super::super::lenient::{Count, Text};
use super::decode::{generated_id, reasoning_details};
use super::parts::ContentParts;
use bakeoff_core::{Content, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

open_struct! {
    ChoiceDelta<'a> {
        content: Value = "content",
        refusal: Text<'a> = "refusal",
        reasoning_content: Text<'a> = "reasoning_content",
        reasoning: Text<'a> = "reasoning",
        reasoning_details: Value = "reasoning_details",
        tool_calls: Vec<CallDelta<'a>> = "tool_calls",
    }
    ignored: ["role"]
}

#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    index: Option<Count>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    /// Fragment of JSON text, or the whole JSON value, as some servers send it.
    arguments: Option<Value>,
}

/// Choice assembled so far.
#[derive(Debug, Default)]
pub(super) struct ChoiceAssembler {
    text: String,
    thinking: String,
    details: Vec<Value>,
    unknown: Vec<Value>,
    calls: Vec<PartialCall>,
    pub(super) finish_reason: Option<String>,
    /// Members of the choice that are not represented otherwise, such as `logprobs`.
    rest: Map<String, Value>,
    /// Members of the message that are not represented otherwise, such as `annotations`.
    message_rest: Map<String, Value>,
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

impl ChoiceAssembler {
    pub(super) fn push(
        &mut self,
        delta: Option<ChoiceDelta<'_>>,
        finish_reason: Option<String>,
        rest: Map<String, Value>,
        deltas: &mut Vec<Delta>,
    ) {
        if let Some(delta) = delta {
            self.push_delta(delta, deltas);
        }
        self.finish_reason = finish_reason.or(self.finish_reason.take());
        accumulate(&mut self.rest, rest);
    }

    fn push_delta(&mut self, delta: ChoiceDelta<'_>, deltas: &mut Vec<Delta>) {
        let parts = ContentParts::from(delta.content.unwrap_or_default());
        let owned = |text: Option<Text<'_>>| text.map(Text::into_owned).unwrap_or_default();
        for fragment in [owned(delta.reasoning_content.or(delta.reasoning)), parts.thinking] {
            if !fragment.is_empty() {
                self.thinking.push_str(&fragment);
                deltas.push(Delta::Thinking(fragment));
            }
        }
        for fragment in [parts.text, owned(delta.refusal)] {
            if !fragment.is_empty() {
                self.text.push_str(&fragment);
                deltas.push(Delta::Text(fragment));
            }
        }
        self.unknown.extend(parts.unknown);
        match delta.reasoning_details {
            None | Some(Value::Null) => {}
            Some(Value::Array(details)) => self.details.extend(details),
            Some(detail) => self.details.push(detail),
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.push_call(call, deltas);
        }
        accumulate(&mut self.message_rest, delta.extra);
    }

    fn push_call(&mut self, delta: CallDelta<'_>, deltas: &mut Vec<Delta>) {
        let (name, arguments) = match delta.function {
            Some(function) => (function.name, function.arguments),
            None => (None, None),
        };
        let id = delta.id.and_then(Text::non_empty);
        let index = delta.index.map(|Count(index)| index);
        let existing = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            // Without an index, an id starts a new call, and anything else continues the last one.
            None if id.is_some() => None,
            None => self.calls.len().checked_sub(1),
        };
        let at = existing.unwrap_or_else(|| {
            let at = self.calls.len();
            let id = id.unwrap_or_else(|| generated_id(at));
            let name = name.map(Text::into_owned).unwrap_or_default();
            deltas.push(Delta::ToolCallStart { index: at, id: id.clone(), name: name.clone() });
            self.calls.push(PartialCall { index, id, name, arguments: String::new() });
            at
        });
        let json = match arguments {
            None | Some(Value::Null) => return,
            Some(Value::String(fragment)) => fragment,
            Some(value) => value.to_string(),
        };
        if !json.is_empty() {
            self.calls[at].arguments.push_str(&json);
            deltas.push(Delta::ToolCallArguments { index: at, json });
        }
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Takes the members that [`into_content`](Self::into_content) does not return.
    pub(super) fn take_rest(&mut self) -> Map<String, Value> {
        let mut rest = std::mem::take(&mut self.rest);
        if !self.message_rest.is_empty() {
            let message = std::mem::take(&mut self.message_rest);
            rest.insert("message".to_owned(), Value::Object(message));
        }
        rest
    }

    pub(super) fn into_content(self) -> Vec<Content> {
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
        content.extend(self.unknown.into_iter().map(|value| Content::Opaque { value }));
        content.extend(self.calls.into_iter().map(|call| {
            Content::ToolCall(ToolCall {
                id: call.id,
                name: call.name,
                arguments: arguments_from_text(&call.arguments),
            })
        }));
        content
    }

    /// Returns the choice in the form of a complete response.
    pub(super) fn into_json(mut self, index: u64) -> Value {
        let mut choice = std::mem::take(&mut self.rest);
        let mut message = std::mem::take(&mut self.message_rest);
        message.insert("role".to_owned(), json!("assistant"));
        message.insert("content".to_owned(), json!(self.text));
        if !self.thinking.is_empty() {
            message.insert("reasoning_content".to_owned(), json!(self.thinking));
        }
        if !self.details.is_empty() {
            message.insert("reasoning_details".to_owned(), Value::Array(self.details));
        }
        if !self.calls.is_empty() {
            let call = |call: PartialCall| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            };
            message.insert("tool_calls".to_owned(), self.calls.into_iter().map(call).collect());
        }
        choice.insert("index".to_owned(), json!(index));
        choice.insert("message".to_owned(), Value::Object(message));
        choice.insert("finish_reason".to_owned(), json!(self.finish_reason));
        Value::Object(choice)
    }
}
