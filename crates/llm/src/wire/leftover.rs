//! Parts of a response that Bakeoff does not decode, kept for [`Response::extra`] at their original paths.
//!
//! [`Response::extra`]: bakeoff_core::Response

use serde_json::{Map, Value};

/// Whether a value carries no information: null, or an empty list, object or text.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_blank),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the members of an object that are neither `known` nor blank.
pub(super) fn leftovers(fields: Map<String, Value>, known: &[&str]) -> Map<String, Value> {
    fields
        .into_iter()
        .filter(|(name, value)| !known.contains(&name.as_str()) && !is_blank(value))
        .collect()
}

/// Adds the members of a streamed fragment: lists are appended, objects are merged, and other values replace
/// earlier ones.
pub(super) fn accumulate(into: &mut Map<String, Value>, fragment: Map<String, Value>) {
    for (name, value) in fragment {
        match (into.get_mut(&name), value) {
            (_, value) if is_blank(&value) => {}
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(Value::Object(fields)), Value::Object(more)) => accumulate(fields, more),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

/// Returns a member with its position in a list of the body, or `None` if nothing is left of it.
pub(super) fn indexed(index: u64, mut fields: Map<String, Value>) -> Option<Value> {
    if fields.is_empty() {
        return None;
    }
    fields.insert("index".to_owned(), index.into());
    Some(Value::Object(fields))
}

/// Adds a list to the extra fields unless it is empty.
pub(super) fn insert_list(extra: &mut Map<String, Value>, name: &str, items: Vec<Value>) {
    if !items.is_empty() {
        extra.insert(name.to_owned(), Value::Array(items));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn blank_and_known_members_are_left_out() {
        let fields = object(json!({
            "known": 1, "none": null, "list": [], "object": {"a": null, "b": []}, "text": "",
            "flag": false, "zero": 0, "kept": {"a": null, "b": 1},
        }));
        let expected = json!({"flag": false, "zero": 0, "kept": {"a": null, "b": 1}});
        assert_eq!(Value::Object(leftovers(fields, &["known"])), expected);
    }

    #[test]
    fn fragments_are_accumulated() {
        let mut whole = Map::new();
        for fragment in [
            json!({"logprobs": {"content": [1], "refusal": null}, "name": "a"}),
            json!({"logprobs": null}),
            json!({"logprobs": {"content": [2, 3]}, "name": "b"}),
        ] {
            accumulate(&mut whole, object(fragment));
        }
        assert_eq!(whole["logprobs"]["content"], json!([1, 2, 3]));
        assert_eq!(whole["name"], "b");
    }
}
