//! Result of a command that ran to its end.

use bakeoff_core::ExitCode;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// Fields of an event of `--json`, as JSON text: a tree of values takes 20 times the memory, which matters for
/// the summary of a large run.
pub(crate) type EventFields = BTreeMap<String, Box<RawValue>>;

/// Exit code of a command and, for `--json`, the fields of its `done` event.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit_code: ExitCode,
    pub(crate) result: EventFields,
}

impl Outcome {
    pub(crate) fn new(exit_code: ExitCode) -> Outcome {
        Outcome { exit_code, result: EventFields::new() }
    }

    pub(crate) fn passed() -> Outcome {
        Outcome::new(ExitCode::Passed)
    }

    /// Adds a field to the result.
    pub(crate) fn with(mut self, name: &str, value: impl Serialize) -> Outcome {
        insert(&mut self.result, name, value);
        self
    }

    /// Adds the fields of a JSON object to the result.
    pub(crate) fn with_fields(mut self, fields: serde_json::Value) -> Outcome {
        if let serde_json::Value::Object(fields) = fields {
            for (name, value) in &fields {
                insert(&mut self.result, name, value);
            }
        }
        self
    }
}

/// Adds a field. A value that cannot be written as JSON becomes `null`.
pub(crate) fn insert(fields: &mut EventFields, name: &str, value: impl Serialize) {
    let text = to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
    fields.insert(name.to_owned(), text);
}
