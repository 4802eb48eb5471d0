//! Result of a command that ran to its end.

use bakeoff_core::ExitCode;
use serde::Serialize;
use serde_json::{Map, Value};

/// Exit code of a command and, for `--json`, the fields of its `done` event.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit_code: ExitCode,
    pub(crate) result: Map<String, Value>,
}

impl Outcome {
    pub(crate) fn new(exit_code: ExitCode) -> Outcome {
        Outcome { exit_code, result: Map::new() }
    }

    pub(crate) fn passed() -> Outcome {
        Outcome::new(ExitCode::Passed)
    }

    /// Adds a field to the result.
    pub(crate) fn with(mut self, name: &str, value: impl Serialize) -> Outcome {
        self.result.insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
        self
    }

    /// Adds the fields of a JSON object to the result.
    pub(crate) fn with_fields(mut self, fields: Value) -> Outcome {
        if let Value::Object(fields) = fields {
            self.result.extend(fields);
        }
        self
    }
}
