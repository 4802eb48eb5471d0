//! Chat history of a case: the field `messages`.

use bakeoff_core::Message;
use serde_json::Value;

/// Name of the field.
pub(crate) const FIELD: &str = "messages";

/// Reads the messages of a case, which models receive before the prompt.
pub(super) fn read(field: Option<&Value>) -> Result<Vec<Message>, String> {
    let items = match field {
        None | Some(Value::Null) => return Ok(Vec::new()),
        // Empty cell of a CSV file.
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Vec::new()),
        Some(Value::Array(items)) => items.as_slice(),
        Some(_) => &[Value::Null],
    };
    let invalid = || {
        format!(
            "case `{FIELD}` must be a list of tables such as {{\"role\": \"user\", \"content\": \"Hello\"}} with \
             the role `user` or `assistant`"
        )
    };
    items.iter().map(|item| message(item).ok_or_else(invalid)).collect()
}

fn message(item: &Value) -> Option<Message> {
    let table = item.as_object()?;
    let content = table.get("content")?.as_str()?;
    match (table.get("role")?.as_str()?, table.len()) {
        ("user", 2) => Some(Message::user(content)),
        ("assistant", 2) => Some(Message::assistant(content)),
        _ => None,
    }
}
