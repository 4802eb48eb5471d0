//! Content of a message: plain text, or a list of parts.

use serde_json::Value;

/// Content by kind. OpenAI sends plain text, Mistral lists of text and thinking, other servers lists with
/// parts of further kinds.
#[derive(Debug, Default)]
pub(super) struct ContentParts {
    pub(super) thinking: String,
    pub(super) text: String,
    /// Parts of unknown types.
    pub(super) unknown: Vec<Value>,
}

impl From<Value> for ContentParts {
    fn from(content: Value) -> ContentParts {
        let mut parts = ContentParts::default();
        match content {
            Value::Null => {}
            Value::String(text) => parts.text = text,
            Value::Array(list) => list.into_iter().for_each(|part| parts.push(part)),
            part @ Value::Object(_) => parts.push(part),
            number => parts.text = number.to_string(),
        }
        parts
    }
}

impl ContentParts {
    fn push(&mut self, part: Value) {
        match (&part, part["type"].as_str()) {
            (Value::Null, _) => {}
            (Value::String(text), _) => self.text.push_str(text),
            (Value::Object(fields), Some("thinking" | "reasoning")) => {
                let inner = fields.get("thinking").or_else(|| fields.get("text"));
                let inner = ContentParts::from(inner.cloned().unwrap_or_default());
                self.thinking.push_str(&inner.text);
                self.unknown.extend(inner.unknown);
            }
            (Value::Object(fields), _) => {
                let text = ["text", "refusal"].iter().find_map(|name| fields.get(*name)?.as_str());
                match text {
                    Some(text) => self.text.push_str(text),
                    None => self.unknown.push(part),
                }
            }
            _ => self.unknown.push(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_are_split_by_kind() {
        let parts = ContentParts::from(json!([
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm. "}, {"text": "Yes."}]},
            {"type": "thinking", "thinking": " So."},
            {"type": "text", "text": "Par"},
            "is",
            null,
            7,
            {"type": "text", "text": 5},
            {"type": "image_url", "image_url": {"url": "data:,"}},
        ]));
        assert_eq!((parts.thinking.as_str(), parts.text.as_str()), ("Hm. Yes. So.", "Paris"));
        assert_eq!(
            parts.unknown,
            [
                json!(7),
                json!({"type": "text", "text": 5}),
                json!({"type": "image_url", "image_url": {"url": "data:,"}}),
            ]
        );
    }

    #[test]
    fn content_of_any_type_is_accepted() {
        let text = |content: Value| ContentParts::from(content).text;
        assert_eq!(text(json!(null)), "");
        assert_eq!(text(json!(12)), "12");
        assert_eq!(text(json!({"type": "text", "text": "Paris"})), "Paris");
    }
}
