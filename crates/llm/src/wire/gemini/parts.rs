//! Collection of the parts of a response, complete or streamed.

use super::super::body::parse;
use super::super::{DecodeError, Delta};
use super::GENERATED_ID_PREFIX;
use bakeoff_core::{Content, ImageSource, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<Call>,
    inline_data: Option<Blob>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob {
    mime_type: Option<String>,
    data: Option<String>,
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
        let part: Part = parse(json)?;
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let (Some(text), Some(true)) = (&part.text, part.thought) {
            self.push_thinking(text, signature);
            deltas.push(Delta::Thinking(text.clone()));
            return Ok(());
        }
        let content = if let Some(text) = part.text {
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
                media_type: blob.mime_type.unwrap_or_default(),
                data: blob.data.unwrap_or_default(),
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
        call: Call,
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
            id: call.id.filter(|id| !id.is_empty()).unwrap_or_else(generated),
            name: call.name.unwrap_or_default(),
            arguments: call.args.unwrap_or_else(|| Value::Object(Map::new())),
        };
        deltas.push(Delta::ToolCallStart { index, id: call.id.clone(), name: call.name.clone() });
        deltas.push(Delta::ToolCallArguments { index, json: call.arguments.to_string() });
        call
    }
}
