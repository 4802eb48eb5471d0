//! JSON Schema validation.

use crate::Error;
use jsonschema::Validator;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A compiled JSON Schema; draft 2020-12 unless `$schema` names another. References to other documents are
/// not followed.
#[derive(Clone)]
pub struct Schema(Arc<Validator>);

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").finish_non_exhaustive()
    }
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// The value is not a JSON Schema.
    pub fn new(schema: &Value) -> Result<Schema, Error> {
        jsonschema::validator_for(schema)
            .map(|validator| Schema(Arc::new(validator)))
            .map_err(|error| Error::new("schema", format!("not a JSON Schema: {error}")))
    }

    pub(crate) fn matches(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// Returns why and where a value does not match; `None` if it matches.
    pub fn problem(&self, value: &Value) -> Option<String> {
        let error = self.0.iter_errors(value).next()?;
        let message: String = error.to_string().chars().take(300).collect();
        Some(match error.instance_path().as_str() {
            "" => message,
            path => format!("{message} at {path}"),
        })
    }
}
