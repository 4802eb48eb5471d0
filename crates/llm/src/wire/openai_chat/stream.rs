//! Decoding of streamed responses.

use super::super::body::{open_struct, parse};
use super::super::leftover::{indexed, insert_list};
use super::super::lenient::{Count, Lenient, Text};
use super::super::{Delta, StreamError, Wire};
use super::choice::{ChoiceAssembler, ChoiceDelta};
use super::{ChatUsage, finish};
use crate::failure::Failure;
use crate::sse::SseEvent;
use bakeoff_core::Response;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

open_struct! {
    Chunk<'a> {
        id: Text<'a> = "id",
        model: Text<'a> = "model",
        choices: Vec<Choice<'a>> = "choices",
        usage: Lenient<ChatUsage> = "usage",
        error: Value = "error",
    }
    // Random padding.
    ignored: ["obfuscation"]
}

open_struct! {
    Choice<'a> {
        index: Count = "index",
        delta: ChoiceDelta<'a> = "delta",
        finish_reason: Text<'a> = "finish_reason",
        error: Value = "error",
    }
    // Some servers repeat the whole message at the end.
    ignored: ["message"]
}

/// Response assembled so far.
#[derive(Debug, Default)]
pub(in crate::wire) struct StreamAssembler {
    id: Option<String>,
    model: Option<String>,
    first: ChoiceAssembler,
    /// Further choices by index, for requests with `n`.
    further: BTreeMap<u64, ChoiceAssembler>,
    is_done: bool,
    usage: Option<ChatUsage>,
    extra: Map<String, Value>,
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
        if self.id.is_none() {
            self.id = chunk.id.and_then(Text::non_empty);
        }
        if self.model.is_none() {
            self.model = chunk.model.and_then(Text::non_empty);
        }
        if let Some(Lenient(usage)) = chunk.usage {
            self.usage = Some(usage);
        }
        self.extra.extend(chunk.extra);
        for choice in chunk.choices.into_iter().flatten() {
            if let Some(error) = choice.error.filter(|error| !error.is_null()) {
                return provider_error(&error);
            }
            let finish_reason = choice.finish_reason.and_then(Text::non_empty);
            match choice.index.unwrap_or_default().0 {
                0 => self.first.push(choice.delta, finish_reason, choice.extra, deltas),
                index => self.further.entry(index).or_default().push(
                    choice.delta,
                    finish_reason,
                    choice.extra,
                    // Only the first choice is the response.
                    &mut Vec::new(),
                ),
            }
        }
        Ok(())
    }

    pub(in crate::wire) fn is_complete(&self) -> bool {
        self.is_done
    }

    pub(in crate::wire) fn finish(mut self) -> Result<Response, StreamError> {
        let is_unfinished = |choice: &ChoiceAssembler| choice.finish_reason.is_none();
        if !self.is_done && (is_unfinished(&self.first) || self.further.values().any(is_unfinished))
        {
            return Err(StreamError::Truncated);
        }
        let reason = self.first.finish_reason.take().unwrap_or_else(|| "missing".to_owned());
        let has_calls = self.first.has_calls();
        let mut choices: Vec<Value> = indexed(0, self.first.take_rest()).into_iter().collect();
        choices.extend(self.further.into_iter().map(|(index, choice)| choice.into_json(index)));
        let mut extra = self.extra;
        insert_list(&mut extra, "choices", choices);
        Ok(Response {
            id: self.id,
            model: self.model,
            content: self.first.into_content(),
            finish: finish(&reason, has_calls),
            usage: self.usage.unwrap_or_default().usage(),
            extra,
        })
    }
}
