//! One row of the input, exactly as it was written.

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;

/// One row: its place in the input, and its fields in the order in which they were written.
///
/// Values stay the JSON text that they are, so that what comes out is what went in: `1.0` is not
/// `1`, and long numbers keep all their digits. Cells of CSV files are JSON strings.
#[derive(Debug, Clone)]
pub struct Row {
    /// From 0.
    pub index: u64,
    /// Names and values.
    pub fields: Vec<(String, Box<RawValue>)>,
}

impl Row {
    /// The value of a field as JSON text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.get())
    }

    /// How much it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.fields.iter().map(|(name, value)| name.len() + value.get().len()).sum()
    }

    /// The value of a field as people would write it: strings without their quotes.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(plain)
    }
}

/// JSON text as people would write it: a string without quotes, everything else as it is.
pub(crate) fn plain(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        _ => json.to_owned(),
    }
}

/// The fields of a JSON object, in order; a field that comes twice is an error.
pub(crate) struct Fields(pub(crate) Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the fields of a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
                let mut known: HashSet<String> = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !known.insert(name.clone()) {
                        return Err(A::Error::custom(format!("the field `{name}` comes twice")));
                    }
                    fields.push((name, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
