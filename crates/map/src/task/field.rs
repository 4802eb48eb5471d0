//! One thing that is answered: its type and its bounds.

use serde_json::{Value, json};
use std::fmt;

/// One field of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name: letters, digits and underscores.
    pub name: String,
    /// What kind of value it has.
    pub kind: FieldType,
    /// What it means, for the model.
    pub description: Option<String>,
    /// An answer without it is no answer.
    pub required: bool,
    /// The only values that it may have.
    pub options: Option<Vec<Value>>,
    /// The least number, or the least length of a text or list.
    pub min: Option<f64>,
    /// The largest number, or the largest length of a text or list.
    pub max: Option<f64>,
    /// The value when the model gives none.
    pub default: Option<Value>,
    /// Of a list: what kind of values it holds.
    pub items: FieldType,
}

/// What kind of value a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A text.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An object with fields of the model's choice.
    Object,
}

impl FieldType {
    /// All of them.
    pub const ALL: [FieldType; 6] = [
        FieldType::String,
        FieldType::Number,
        FieldType::Integer,
        FieldType::Boolean,
        FieldType::Array,
        FieldType::Object,
    ];

    /// As it is written in a task.
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

    /// Whether `min` and `max` are numbers; otherwise they are lengths.
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
    /// A required field without bounds.
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

    /// About how many tokens it takes in an answer, with its name. Never so many that a sum of them
    /// overflows, whatever bounds the task has.
    pub(crate) fn tokens(&self) -> u64 {
        const OF_TEXT: u64 = 24;
        const MOST: u64 = 1 << 32;
        let name = (self.name.len() as u64).div_ceil(4) + 3;
        let longest_option = self.options.iter().flatten().map(|option| option.to_string().len());
        let value = match (longest_option.max(), self.kind) {
            (Some(longest), _) => (longest as u64).div_ceil(4),
            (None, FieldType::String) => match self.max {
                // Texts are usually shorter than they may be.
                Some(most) => (most / 8.0).ceil() as u64,
                None => OF_TEXT,
            },
            (None, FieldType::Number | FieldType::Integer) => 4,
            (None, FieldType::Boolean) => 2,
            (None, FieldType::Array) => match self.max {
                Some(most) => (most * 4.0).ceil() as u64,
                None => OF_TEXT,
            },
            (None, FieldType::Object) => 2 * OF_TEXT,
        };
        name.saturating_add(value).min(MOST)
    }

    /// What the model is told of it, on one line.
    pub(crate) fn in_words(&self) -> String {
        let mut words = format!("- `{}`: {}", self.name, self.kind);
        if self.kind == FieldType::Array {
            words.push_str(&format!(" of {} values", self.items));
        }
        let is_needed = self.required && self.default.is_none();
        words.push_str(if is_needed { ", required" } else { ", may be left out" });
        if let Some(options) = &self.options {
            let options: Vec<String> = options.iter().map(Value::to_string).collect();
            words.push_str(&format!(", one of {}", options.join(" | ")));
        }
        let unit = match self.kind {
            FieldType::String => " characters",
            FieldType::Array => " values",
            _ => "",
        };
        if let Some(least) = self.min {
            words.push_str(&format!(", at least {least}{unit}"));
        }
        if let Some(most) = self.max {
            words.push_str(&format!(", at most {most}{unit}"));
        }
        if let Some(description) = &self.description {
            // One line each, whatever the task has.
            let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
            words.push_str(&format!(". {description}"));
        }
        words
    }

    /// A value for the example.
    pub(crate) fn example(&self) -> Value {
        let of = |kind: FieldType| match kind {
            FieldType::String => json!("…"),
            FieldType::Number => json!(self.min.unwrap_or(0.5)),
            FieldType::Integer => json!(self.min.unwrap_or(1.0).ceil() as i64),
            FieldType::Boolean => json!(true),
            FieldType::Array => json!([]),
            FieldType::Object => json!({}),
        };
        match (&self.options, self.kind) {
            (Some(options), _) => options.first().cloned().unwrap_or(Value::Null),
            (None, FieldType::Array) => json!([of(self.items)]),
            (None, kind) => of(kind),
        }
    }

    /// JSON Schema as providers' structured outputs take it: everything is required, and what may
    /// be left out may be null. Lengths are left to validation, because not all of them know any.
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

    /// Whether structured outputs can describe it: they know no objects with free fields.
    pub(crate) fn has_schema(&self) -> bool {
        let is_scalar = |kind| !matches!(kind, FieldType::Object | FieldType::Array);
        is_scalar(self.kind) || self.kind == FieldType::Array && is_scalar(self.items)
    }
}
