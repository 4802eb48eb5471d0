//! Parts shared by the formats: merging of extra fields, open objects, tool arguments.

use super::DecodeError;
use bakeoff_core::{Content, ImageSource, Thinking};
use serde::Serialize;
use serde::de::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Serializes a body, with the user's extra fields merged in.
pub(super) fn to_json(body: &impl Serialize, extra: &Map<String, Value>) -> Vec<u8> {
    // Serializing fails only for maps with non-string keys and for failing writers. Bodies have string keys,
    // and the writer is a vector.
    if extra.is_empty() {
        return serde_json::to_vec(body).unwrap_or_default();
    }
    let mut value = serde_json::to_value(body).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        merge(map, extra);
    }
    serde_json::to_vec(&value).unwrap_or_default()
}

fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Parses a body or an event; a byte order mark before it is skipped.
pub(super) fn parse<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, DecodeError> {
    let json = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    serde_json::from_slice(json).map_err(|error| DecodeError::malformed(error.to_string(), body))
}

/// Returns an image as a URL; bytes become a `data:` URL.
pub(super) fn image_url(source: &ImageSource) -> Cow<'_, str> {
    match source {
        ImageSource::Url { url } => Cow::Borrowed(url),
        ImageSource::Base64 { media_type, data } => Cow::Owned(data_url(media_type, data)),
    }
}

/// Returns base64 data as a `data:` URL.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Returns the text of content that consists of one text only; most formats encode it as a plain string.
pub(super) fn only_text(content: &[Content]) -> Option<&str> {
    match content {
        [Content::Text { text }] => Some(text),
        _ => None,
    }
}

/// Parses tool arguments; text that is not JSON becomes a string.
pub(super) fn arguments_from_text(text: &str) -> Value {
    if text.trim().is_empty() {
        // A call without arguments.
        return Value::Object(Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Returns tool arguments as JSON text, the form of OpenAI's formats.
pub(super) fn arguments_to_text(arguments: &Value) -> Cow<'_, str> {
    match arguments {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Prefix of a failed tool result, in formats without a field for it.
pub(super) const TOOL_ERROR_PREFIX: &str = "Error: ";

/// Parses tool arguments that are a JSON object, or that object as text; absent ones are an empty object.
pub(super) fn arguments_from_value(value: Option<Value>) -> Value {
    match value {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) => arguments_from_text(&text),
        Some(value) => value,
    }
}

/// Maps thinking to OpenAI's effort levels, because its formats have no token budgets.
pub(super) fn openai_effort(thinking: &Thinking) -> &str {
    match thinking {
        Thinking::Effort(effort) => effort,
        Thinking::Budget(0) => "none",
        Thinking::Budget(..=2_048) => "low",
        Thinking::Budget(..=8_192) => "medium",
        Thinking::Budget(_) => "high",
    }
}

/// A field name, borrowed where the JSON has no escapes in it.
#[derive(serde::Deserialize)]
pub(super) struct Key<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Defines an object that collects unknown fields in `extra`.
///
/// `serde(flatten)` would buffer the whole object first, which doubles the time and cannot borrow from the
/// input.
macro_rules! open_struct {
    (
        $(#[$meta:meta])*
        $name:ident<$life:lifetime> { $($field:ident: $type:ty = $key:literal,)* }
        ignored: [$($ignored:literal),*]
    ) => {
        $(#[$meta])*
        #[derive(Default)]
        pub(super) struct $name<$life> {
            $(pub(super) $field: Option<$type>,)*
            pub(super) extra: serde_json::Map<String, serde_json::Value>,
            _life: std::marker::PhantomData<&$life ()>,
        }

        impl<'de: $life, $life> serde::Deserialize<'de> for $name<$life> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ObjectVisitor<$life>(std::marker::PhantomData<&$life ()>);
                impl<'de: $life, $life> serde::de::Visitor<'de> for ObjectVisitor<$life> {
                    type Value = $name<$life>;
                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        formatter.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut object = $name::default();
                        while let Some(key) = map.next_key::<$crate::wire::body::Key<'de>>()? {
                            match key.0.as_ref() {
                                $($key => object.$field = map.next_value()?,)*
                                $($ignored => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                })*
                                _ => {
                                    let value: serde_json::Value = map.next_value()?;
                                    // A null is equivalent to an absent field.
                                    if !value.is_null() {
                                        object.extra.insert(key.0.into_owned(), value);
                                    }
                                }
                            }
                        }
                        Ok(object)
                    }
                }
                deserializer.deserialize_map(ObjectVisitor(std::marker::PhantomData))
            }
        }
    };
}
pub(super) use open_struct;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn extra_fields_replace_values_and_merge_objects() {
        let body = json!({"a": 1, "b": {"c": 2, "d": [1, 2]}});
        let Value::Object(extra) = json!({"a": null, "b": {"d": [3], "e": 4}, "f": 5}) else {
            unreachable!()
        };
        let merged: Value = serde_json::from_slice(&to_json(&body, &extra)).unwrap();
        assert_eq!(merged, json!({"a": null, "b": {"c": 2, "d": [3], "e": 4}, "f": 5}));
    }

    #[test]
    fn arguments_that_are_not_json_become_a_string() {
        assert_eq!(arguments_from_text(r#"{"a":1}"#), json!({"a": 1}));
        assert_eq!(arguments_from_text(r#"{"a":"#), json!(r#"{"a":"#));
        assert_eq!(arguments_from_text(" "), json!({}));
        assert_eq!(arguments_to_text(&json!(r#"{"a":"#)), r#"{"a":"#);
        assert_eq!(arguments_to_text(&json!({"a": 1})), r#"{"a":1}"#);
    }

    #[test]
    fn budgets_map_to_efforts() {
        let cases = [(0, "none"), (1, "low"), (2_048, "low"), (2_049, "medium"), (9_000, "high")];
        for (budget, effort) in cases {
            assert_eq!(openai_effort(&Thinking::Budget(budget)), effort);
        }
    }
}
