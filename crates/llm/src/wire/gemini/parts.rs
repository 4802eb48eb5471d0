//! Collecting the parts of an answer, which come all at once or in pieces.

use super::super::body::parse;
use super::super::{DecodeError, Delta};
use super::MADE_UP_ID;
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

/// The parts so far.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) content: Vec<Content>,
    pub(super) calls: usize,
}

impl Parts {
    /// Adds a part. Text that continues the text before it is joined to it, so that an answer is
    /// the same however it was cut.
    pub(super) fn push(
        &mut self,
        raw: &RawValue,
        response_id: Option<&str>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), DecodeError> {
        let json = raw.get().as_bytes();
        let part: Part = parse(json)?;
        let proof = part.thought_signature.filter(|proof| !proof.is_empty());
        if let (Some(text), Some(true)) = (&part.text, part.thought) {
            self.think(text, proof);
            deltas.push(Delta::Thinking(text.clone()));
            return Ok(());
        }
        let content = if let Some(text) = part.text {
            if let (None, Some(Content::Text { text: before })) = (&proof, self.content.last_mut())
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
            Some(Content::ToolCall(self.call(call, response_id, deltas)))
        } else if let Some(blob) = part.inline_data {
            let source = ImageSource::Base64 {
                media_type: blob.mime_type.unwrap_or_default(),
                data: blob.data.unwrap_or_default(),
            };
            Some(Content::Image { source })
        } else {
            // It keeps its own proof.
            self.content.push(Content::Opaque { value: parse(json)? });
            return Ok(());
        };
        if proof.is_some() {
            self.content.push(Content::Thinking { text: String::new(), signature: proof });
        }
        self.content.extend(content);
        Ok(())
    }

    fn think(&mut self, thought: &str, proof: Option<String>) {
        match self.content.last_mut() {
            Some(Content::Thinking { text, signature: signature @ None }) => {
                text.push_str(thought);
                *signature = proof;
            }
            _ => {
                self.content.push(Content::Thinking { text: thought.to_owned(), signature: proof })
            }
        }
    }

    fn call(&mut self, call: Call, response_id: Option<&str>, deltas: &mut Vec<Delta>) -> ToolCall {
        let index = self.calls;
        self.calls += 1;
        // The answer's id keeps the made-up ones apart over a whole conversation.
        let made_up = || match response_id {
            Some(answer) => format!("{MADE_UP_ID}{answer}-{index}"),
            None => format!("{MADE_UP_ID}{index}"),
        };
        let call = ToolCall {
            id: call.id.filter(|id| !id.is_empty()).unwrap_or_else(made_up),
            name: call.name.unwrap_or_default(),
            arguments: call.args.unwrap_or_else(|| Value::Object(Map::new())),
        };
        deltas.push(Delta::ToolCallStart { index, id: call.id.clone(), name: call.name.clone() });
        deltas.push(Delta::ToolCallArguments { index, json: call.arguments.to_string() });
        call
    }
}
