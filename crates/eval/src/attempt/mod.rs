//! How each kind of target makes its attempt.

mod model;
mod program;
mod service;
mod worker;

pub(crate) use model::describe;
pub(crate) use worker::{has_workers, workers};

use bakeoff_core::{Redactor, ToolUse, TrialKey};

/// Names the trial to a program and to the gateway.
fn trial_id(key: &TrialKey) -> String {
    format!("{}/{}/{}", key.target, key.case, key.trial)
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
        ToolUse { name: redactor.scrub(tool.name), arguments }
    };
    tools.into_iter().map(clean).collect()
}
