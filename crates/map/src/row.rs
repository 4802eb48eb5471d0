//! One row of the input, with its values as written.

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;

/// A row: its index in the input, and its fields in their original order.
///
/// Values are kept as JSON text, so that the output repeats them unchanged: `1.0` does not become `1`, and
/// long numbers keep all their digits. Cells of CSV files are JSON strings.
#[derive(Debug, Clone)]
pub struct Row {
    /// Index in the input, from 0.
    pub index: u64,
    /// Names and values of the fields.
    pub fields: Vec<(String, Box<RawValue>)>,
}

impl Row {
    /// Returns the value of a field as JSON text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.get())
    }

    /// Returns the size of names and values in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.fields.iter().map(|(name, value)| name.len() + value.get().len()).sum()
    }

    /// Returns the value of a field as plain text: strings without quotes, other values as JSON.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(to_plain)
    }
}

/// Converts JSON text to plain text: strings without quotes, other values unchanged.
pub(crate) fn to_plain(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        _ => json.to_owned(),
    }
}

/// RowFields of a JSON object in their original order. Duplicate fields are an error.
pub(crate) struct RowFields(pub(crate) Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for RowFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RowFields, D::Error> {
        struct FieldVisitor;
        impl<'de> Visitor<'de> for FieldVisitor {
            type Value = RowFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RowFields, A::Error> {
                let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
                let mut known: HashSet<String> = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !known.insert(name.clone()) {
                        return Err(A::Error::custom(format!("duplicate field `{name}`")));
                    }
                    fields.push((name, map.next_value()?));
                }
                Ok(RowFields(fields))
            }
        }
        deserializer.deserialize_map(FieldVisitor)
    }
}
