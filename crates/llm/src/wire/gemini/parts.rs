//! Collection of the parts of a response, complete or streamed.

use super::super::body::{arguments_from_value, parse};
use super::super::lenient::{Lenient, Text};
use super::super::{DecodeError, Delta};
use super::GENERATED_ID_PREFIX;
use bakeoff_core::{Content, ImageSource, ToolCall};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    thought: Option<Lenient<bool>>,
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
    #[serde(borrow)]
    function_call: Option<Call<'a>>,
    #[serde(borrow)]
    inline_data: Option<Blob<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    #[serde(borrow)]
    mime_type: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
}

/// Content collected so far.
#[derive(Debug, Default)]
pub(super) struct PartCollector {
    pub(super) content: Vec<Content>,
    pub(super) calls: usize,
}

impl PartCollector {
    /// Adds a part. Text is appended to preceding text, so that the content does not depend on how a stream
    /// was split.
    pub(super) fn push(
        &mut self,
        raw: &RawValue,
        response_id: Option<&str>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), DecodeError> {
        let json = raw.get().as_bytes();
        let part: Part<'_> = parse(json)?;
        let signature = part.thought_signature.and_then(Text::non_empty);
        let is_thought = part.thought.is_some_and(|thought| thought.0);
        if let (Some(Text(text)), true) = (&part.text, is_thought) {
            self.push_thinking(text, signature);
            deltas.push(Delta::Thinking(text.clone().into_owned()));
            return Ok(());
        }
        let content = if let Some(text) = part.text.map(Text::into_owned) {
            if let (None, Some(Content::Text { text: before })) =
                (&signature, self.content.last_mut())
            {
                before.push_str(&text);
                deltas.push(Delta::Text(text));
                return Ok(());
            }
            if !text.is_empty() {
                deltas.push(Delta::Text(text.clone()));
            }
            (!text.is_empty()).then_some(Content::Text { text })
        } else if let Some(call) = part.function_call {
            Some(Content::ToolCall(self.add_call(call, response_id, deltas)))
        } else if let Some(blob) = part.inline_data {
            let source = ImageSource::Base64 {
                media_type: blob.mime_type.map(Text::into_owned).unwrap_or_default(),
                data: blob.data.map(Text::into_owned).unwrap_or_default(),
            };
            Some(Content::Image { source })
        } else {
            // The opaque value contains its signature.
            self.content.push(Content::Opaque { value: parse(json)? });
            return Ok(());
        };
        if signature.is_some() {
            self.content.push(Content::Thinking { text: String::new(), signature });
        }
        self.content.extend(content);
        Ok(())
    }

    fn push_thinking(&mut self, thinking: &str, new_signature: Option<String>) {
        match self.content.last_mut() {
            Some(Content::Thinking { text, signature: signature @ None }) => {
                text.push_str(thinking);
                *signature = new_signature;
            }
            _ => self
                .content
                .push(Content::Thinking { text: thinking.to_owned(), signature: new_signature }),
        }
    }

    fn add_call(
        &mut self,
        call: Call<'_>,
        response_id: Option<&str>,
        deltas: &mut Vec<Delta>,
    ) -> ToolCall {
        let index = self.calls;
        self.calls += 1;
        // The response id keeps generated ids distinct within a conversation.
        let generated = || match response_id {
            Some(response) => format!("{GENERATED_ID_PREFIX}{response}-{index}"),
            None => format!("{GENERATED_ID_PREFIX}{index}"),
        };
        let call = ToolCall {
            id: call.id.and_then(Text::non_empty).unwrap_or_else(generated),
            name: call.name.map(Text::into_owned).unwrap_or_default(),
            arguments: arguments_from_value(call.args),
        };
        deltas.push(Delta::ToolCallStart { index, id: call.id.clone(), name: call.name.clone() });
        deltas.push(Delta::ToolCallArguments { index, json: call.arguments.to_string() });
        call
    }
}
