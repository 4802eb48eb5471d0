//! How each kind of target makes its attempt.

mod agent;
mod chain;
mod model;
mod program;
mod service;
mod worker;
mod workspace;

pub(crate) use model::{Question, describe};
pub(crate) use worker::{has_workers, workers};

use bakeoff_core::{Redactor, ToolUse, TrialKey};
use bakeoff_suite::Target;
use serde_json::Value;

/// What the answers of a trial are samples of: combinations of a target share theirs.
pub(crate) fn sample(target: &Target, key: &TrialKey) -> String {
    format!("{}\0{}", target.base(), key.case)
}

/// Names the trial to a program and to the gateway.
pub(crate) fn trial_id(key: &TrialKey) -> String {
    format!("{}/{}/{}", key.target, key.case, key.trial)
}

/// Deepest nesting of what tools were given: a line of the journal is read back to a certain depth.
const DEEPEST: usize = 64;

/// A value; as text, when it is nested too deeply.
fn shallow(value: Value) -> Value {
    fn is_deeper(value: &Value, most: usize) -> bool {
        match value {
            Value::Array(items) => {
                most == 0 || items.iter().any(|value| is_deeper(value, most - 1))
            }
            Value::Object(entries) => {
                most == 0 || entries.values().any(|value| is_deeper(value, most - 1))
            }
            _ => false,
        }
    }
    if is_deeper(&value, DEEPEST) { Value::String(value.to_string()) } else { value }
}

/// What tools were given, without secrets.
fn without_secrets(tools: Vec<ToolUse>, redactor: &Redactor) -> Vec<ToolUse> {
    let clean = |tool: ToolUse| {
        let json = tool.arguments.to_string();
        let arguments = match redactor.finds_in(&json) {
            // What cannot be read any more held a secret in an odd place; none of it is kept.
            true => serde_json::from_str(&redactor.scrub(json)).unwrap_or_default(),
            false => tool.arguments,
        };
        ToolUse { name: redactor.scrub(tool.name), arguments: shallow(arguments) }
    };
    tools.into_iter().map(clean).collect()
}
