//! A field of an answer: its type, options and bounds.

use serde_json::{Value, json};
use std::fmt;

/// One field of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name: letters, digits and underscores.
    pub name: String,
    /// Type of the value.
    pub kind: FieldType,
    /// Description for the model.
    pub description: Option<String>,
    /// Whether an answer without the field is invalid.
    pub required: bool,
    /// Allowed values; all if absent.
    pub options: Option<Vec<Value>>,
    /// Minimum number, or minimum length of a string or array.
    pub min: Option<f64>,
    /// Maximum number, or maximum length of a string or array.
    pub max: Option<f64>,
    /// Value if the model gives none.
    pub default: Option<Value>,
    /// Type of the values of an array.
    pub items: FieldType,
}

/// Type of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A string.
    String,
    /// A number.
    Number,
    /// An integer.
    Integer,
    /// True or false.
    Boolean,
    /// An array.
    Array,
    /// An object with arbitrary fields.
    Object,
}

impl FieldType {
    /// All types.
    pub const ALL: [FieldType; 6] = [
        FieldType::String,
        FieldType::Number,
        FieldType::Integer,
        FieldType::Boolean,
        FieldType::Array,
        FieldType::Object,
    ];

    /// Returns the name used in task files.
    pub fn as_str(self) -> &'static str {
        match self {
            FieldType::String => "string",
            FieldType::Number => "number",
            FieldType::Integer => "integer",
            FieldType::Boolean => "boolean",
            FieldType::Array => "array",
            FieldType::Object => "object",
        }
    }

    /// Returns whether `min` and `max` bound the value itself; otherwise they bound its length.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, FieldType::Number | FieldType::Integer)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Field {
    /// Creates a required field without bounds.
    pub fn new(name: &str, kind: FieldType) -> Field {
        Field {
            name: name.to_owned(),
            kind,
            description: None,
            required: true,
            options: None,
            min: None,
            max: None,
            default: None,
            items: FieldType::String,
        }
    }

    /// Estimates the tokens of the field in an answer, with its name. The result is capped, so that sums do
    /// not overflow with absurd bounds.
    pub(crate) fn estimate_tokens(&self) -> u64 {
        const STRING_TOKENS: u64 = 24;
        const MAX_TOKENS: u64 = 1 << 32;
        let name = (self.name.len() as u64).div_ceil(4) + 3;
        let longest_option = self.options.iter().flatten().map(|option| option.to_string().len());
        let value = match (longest_option.max(), self.kind) {
            (Some(longest), _) => (longest as u64).div_ceil(4),
            (None, FieldType::String) => match self.max {
                // Strings are usually half as long as allowed, at four characters per token.
                Some(max) => (max / 8.0).ceil() as u64,
                None => STRING_TOKENS,
            },
            (None, FieldType::Number | FieldType::Integer) => 4,
            (None, FieldType::Boolean) => 2,
            (None, FieldType::Array) => match self.max {
                Some(max) => (max * 4.0).ceil() as u64,
                None => STRING_TOKENS,
            },
            (None, FieldType::Object) => 2 * STRING_TOKENS,
        };
        name.saturating_add(value).min(MAX_TOKENS)
    }

    /// Describes the field for the model, on one line.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("- `{}`: {}", self.name, self.kind);
        if self.kind == FieldType::Array {
            text.push_str(&format!(" of {} values", self.items));
        }
        let is_required = self.required && self.default.is_none();
        text.push_str(if is_required { ", required" } else { ", may be left out" });
        if let Some(options) = &self.options {
            let options: Vec<String> = options.iter().map(Value::to_string).collect();
            text.push_str(&format!(", one of {}", options.join(" | ")));
        }
        let unit = match self.kind {
            FieldType::String => " characters",
            FieldType::Array => " values",
            _ => "",
        };
        if let Some(min) = self.min {
            text.push_str(&format!(", at least {min}{unit}"));
        }
        if let Some(max) = self.max {
            text.push_str(&format!(", at most {max}{unit}"));
        }
        if let Some(description) = &self.description {
            // The description may span several lines in the task file.
            let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!(". {description}"));
        }
        text
    }

    /// Returns a value for the example in the prompt.
    pub(crate) fn example(&self) -> Value {
        let example_of = |kind: FieldType| match kind {
            FieldType::String => json!("…"),
            FieldType::Number => json!(self.min.unwrap_or(0.5)),
            FieldType::Integer => json!(self.min.unwrap_or(1.0).ceil() as i64),
            FieldType::Boolean => json!(true),
            FieldType::Array => json!([]),
            FieldType::Object => json!({}),
        };
        match (&self.options, self.kind) {
            (Some(options), _) => options.first().cloned().unwrap_or(Value::Null),
            (None, FieldType::Array) => json!([example_of(self.items)]),
            (None, kind) => example_of(kind),
        }
    }

    /// Returns the JSON Schema in the dialect of structured outputs: all fields are required, and optional
    /// ones may be null. Bounds are left to validation, because not all providers support them.
    pub(crate) fn schema(&self) -> Value {
        let kind = match self.required && self.default.is_none() {
            true => json!(self.kind.as_str()),
            false => json!([self.kind.as_str(), "null"]),
        };
        let mut schema = json!({ "type": kind });
        if let Some(description) = &self.description {
            schema["description"] = json!(description);
        }
        if let Some(options) = &self.options {
            let mut options = options.clone();
            if !(self.required && self.default.is_none()) {
                options.push(Value::Null);
            }
            schema["enum"] = Value::Array(options);
        }
        if self.kind == FieldType::Array {
            schema["items"] = json!({ "type": self.items.as_str() });
        }
        schema
    }

    /// Returns whether structured outputs can describe the field. They do not support objects with
    /// arbitrary fields.
    pub(crate) fn has_schema(&self) -> bool {
        let is_scalar = |kind| !matches!(kind, FieldType::Object | FieldType::Array);
        is_scalar(self.kind) || self.kind == FieldType::Array && is_scalar(self.items)
    }
}
