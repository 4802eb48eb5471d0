//! Answers of items in memory, and reasons why an item has none.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::ops::Index;

/// Answer for one item: the fields of the task with valid values. Optional fields without a value are null.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Answer {
    fields: Map<String, Value>,
}

impl Answer {
    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// Returns the value of a field if it is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Returns all fields.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Converts the answer into a type with a field for each field of the task.
    ///
    /// # Errors
    ///
    /// Fails if the type does not match the task.
    pub fn deserialize<T: DeserializeOwned>(self) -> Result<T, serde_json::Error> {
        serde_json::from_value(Value::Object(self.fields))
    }
}

impl Index<&str> for Answer {
    type Output = Value;

    /// Returns the value of a field; null if there is no such field.
    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }
}

impl From<Map<String, Value>> for Answer {
    fn from(fields: Map<String, Value>) -> Answer {
        Answer { fields }
    }
}

/// Reason why an item has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// The item exceeds the limit on tokens of a request and was not sent.
    #[error("{0}")]
    TooLarge(String),
    /// No request for the item returned a valid answer.
    #[error("{0}")]
    NoAnswer(String),
    /// The model stopped accepting requests before the item had an answer. Sending it later may succeed.
    #[error("not processed: {0}")]
    NotProcessed(String),
}
