//! Minimal JSON values for a JSON Schema, for tool arguments and structured answers.
//!
//! Supports the keywords common in tool schemas: types, properties, enums, bounds, references and
//! alternatives. Ignores patterns, dependencies and negations.

use serde_json::{Map, Value, json};

/// Values to use where the schema permits several.
#[derive(Debug, Clone)]
pub(crate) struct FillHints {
    pub(crate) number: i64,
    pub(crate) text: String,
}

/// Below this depth only required properties are filled, so that recursive schemas end as early as
/// they allow.
const OPTIONAL_DEPTH: usize = 4;
/// Below this depth every value is null.
const MAX_DEPTH: usize = 32;
/// Maximum number of values in total, which bounds schemas with exponential expansion.
const MAX_VALUES: usize = 10_000;

/// Returns a value that satisfies the schema.
pub(crate) fn fill(schema: &Value, hints: &FillHints) -> Value {
    SchemaFiller { root: schema, hints, values: 0 }.value(schema, 0)
}

struct SchemaFiller<'a> {
    root: &'a Value,
    hints: &'a FillHints,
    values: usize,
}

impl<'a> SchemaFiller<'a> {
    fn value(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return Value::Null;
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return self.option(options);
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap_or(reference);
            return match self.root.pointer(pointer) {
                Some(target) => self.value(target, depth + 1),
                None => Value::Null,
            };
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            if let Some(first) = schema.get(keyword).and_then(|list| list.get(0)) {
                return self.value(first, depth + 1);
            }
        }
        match type_of(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "integer" => json!(self.number(schema, true) as i64),
            "number" => json!(self.number(schema, false)),
            "boolean" => json!(true),
            "null" => Value::Null,
            _ => json!(self.text(schema)),
        }
    }

    /// Returns the option equal to a hint, or else the first.
    fn option(&self, options: &[Value]) -> Value {
        let hinted = |option: &&Value| {
            option.as_str() == Some(self.hints.text.as_str())
                || option.as_i64() == Some(self.hints.number)
        };
        options.iter().find(hinted).or(options.first()).cloned().unwrap_or(Value::Null)
    }

    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let mut object = Map::new();
        let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
            Some(names) => names.iter().filter_map(Value::as_str).collect(),
            None => Vec::new(),
        };
        for (name, property) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if depth < OPTIONAL_DEPTH || required.contains(&name.as_str()) {
                object.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), json!(self.hints.text));
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &'a Value, depth: usize) -> Value {
        let length = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let Some(items) = schema.get("items") else { return json!([]) };
        // One item is a more useful example than none, above the depth where nesting must end.
        let length = if depth < OPTIONAL_DEPTH { length.max(1) } else { length };
        let length = usize::try_from(length).unwrap_or(MAX_VALUES).min(MAX_VALUES);
        Value::Array((0..length).map(|_| self.value(items, depth + 1)).collect())
    }

    fn number(&self, schema: &Value, whole: bool) -> f64 {
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        // Distance of the value from an exclusive bound.
        let step = if whole { 1.0 } else { 0.5 };
        let lower = bound("minimum").or(bound("exclusiveMinimum").map(|bound| bound + step));
        let upper = bound("maximum").or(bound("exclusiveMaximum").map(|bound| bound - step));
        let number = self.hints.number as f64;
        let number = lower.map_or(number, |lower| number.max(lower));
        let number = upper.map_or(number, |upper| number.min(upper));
        if whole { number.round() } else { number }
    }

    fn text(&self, schema: &Value) -> String {
        let base = match schema.get("format").and_then(Value::as_str) {
            Some("date") => "2026-01-01",
            Some("date-time") => "2026-01-01T00:00:00Z",
            Some("time") => "00:00:00Z",
            Some("email") => "baker@example.com",
            Some("uri") => "https://example.com/",
            Some("uuid") => "00000000-0000-4000-8000-000000000000",
            _ => self.hints.text.as_str(),
        };
        let length = |name: &str| {
            let length = schema.get(name).and_then(Value::as_u64)?;
            usize::try_from(length).ok()
        };
        let mut text: String =
            base.chars().take(length("maxLength").unwrap_or(usize::MAX)).collect();
        let missing = length("minLength").unwrap_or(0).min(MAX_VALUES);
        let missing = missing.saturating_sub(text.chars().count());
        text.extend(std::iter::repeat_n('x', missing));
        text
    }
}

/// Returns the schema's type; of several the first that is not null.
fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            let mut names = names.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(schema: Value) -> Value {
        fill(&schema, &FillHints { number: 2, text: "hint".into() })
    }

    #[test]
    fn fills_each_property_type() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string" },
                "short": { "type": "string", "maxLength": 2 },
                "long": { "type": "string", "minLength": 6 },
                "date": { "type": "string", "format": "date" },
                "whole": { "type": "integer", "minimum": 5 },
                "most": { "type": "integer", "exclusiveMaximum": 2 },
                "number": { "type": "number", "exclusiveMinimum": 2 },
                "flag": { "type": "boolean" },
                "word": { "enum": ["other", "hint"] },
                "fixed": { "const": 7 },
                "maybe": { "type": ["null", "integer"] },
                "list": { "type": "array", "items": { "type": "integer" }, "minItems": 2 },
                "either": { "anyOf": [{ "type": "boolean" }, { "type": "string" }] },
                "there": { "$ref": "#/$defs/thing" }
            },
            "required": ["text", "undescribed"],
            "$defs": { "thing": { "type": "object", "properties": { "n": { "type": "integer" } } } }
        });
        assert_eq!(
            filled(schema),
            json!({
                "text": "hint", "short": "hi", "long": "hintxx", "date": "2026-01-01",
                "whole": 5, "most": 1, "number": 2.5, "flag": true, "word": "hint", "fixed": 7,
                "maybe": 2, "list": [2, 2], "either": true, "there": { "n": 2 },
                "undescribed": "hint"
            })
        );
    }

    #[test]
    fn recursive_schemas_terminate() {
        let tree = json!({
            "type": "object",
            "properties": {
                "left": { "$ref": "#" }, "right": { "$ref": "#" }, "name": { "type": "string" }
            },
            "required": ["name"]
        });
        let text = filled(tree).to_string();
        assert!(text.len() < 10_000 && text.contains("left"), "{}", text.len());
        assert!(filled(json!({ "$ref": "#" })).is_null());
        let wide: Map<String, Value> =
            (0..200).map(|n| (n.to_string(), json!({ "$ref": "#" }))).collect();
        let text = filled(json!({ "properties": wide })).to_string();
        assert!(text.len() < 200_000, "{}", text.len());
    }

    #[test]
    fn invalid_schemas_give_a_value() {
        assert_eq!(filled(json!(true)), json!("hint"));
        assert_eq!(filled(json!({ "type": 3, "enum": [] })), Value::Null);
        assert_eq!(filled(json!({ "type": "array", "minItems": 1e300 })), json!([]));
    }
}
