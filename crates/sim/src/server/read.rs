//! Parsing shared by both formats: message content, tool names, stop texts.

use bakeoff_core::{Content, Message};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses a JSON body.
pub(super) fn body<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| {
        if error.is_data() {
            error.to_string()
        } else {
            format!("We could not parse the JSON body of your request: {error}")
        }
    })
}

/// Returns the string under a key.
pub(super) fn string(value: &Value, key: &str) -> Result<String, String> {
    match value.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("`{key}` must be a string")),
        None => Err(format!("`{key}` is missing")),
    }
}

/// Parses message content: null, a string, or a list of parts parsed by `part`.
pub(super) fn content(
    value: Value,
    part: impl Fn(Value) -> Result<Content, String>,
) -> Result<Vec<Content>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Content::Text { text }]),
        Value::Array(parts) => parts.into_iter().map(part).collect(),
        _ => Err("`content` must be a string or an array of parts".into()),
    }
}

/// Parses a string or a list of strings.
pub(super) fn texts(value: Option<Value>, key: &str) -> Result<Vec<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(list) => serde_json::from_value(list)
            .map_err(|_| format!("`{key}` must be a string or an array of strings")),
    }
}

/// Returns the name of the tool called under this id in an earlier message; results do not repeat it.
pub(super) fn tool_name(messages: &[Message], id: &str) -> String {
    let parts = messages.iter().rev().flat_map(Message::content);
    let mut calls = parts.filter_map(|part| match part {
        Content::ToolCall(call) if call.id == id => Some(call.name.clone()),
        _ => None,
    });
    calls.next().unwrap_or_default()
}
