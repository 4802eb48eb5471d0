//! opencode: `run --format json`.

use super::EventFormat;
use super::output::{AgentOutput, error_message, text, tokens};
use bakeoff_core::Usage;
use serde_json::Value;

/// The answer is the text of the last step.
#[derive(Debug, Default)]
pub(super) struct OpenCode {
    is_answering: bool,
}

impl EventFormat for OpenCode {
    fn apply(&mut self, event: &Value, output: &mut AgentOutput) {
        let part = &event["part"];
        match event["type"].as_str() {
            Some("text") => {
                if !self.is_answering {
                    output.set_answer(None);
                }
                self.is_answering = true;
                output.append_answer(part["text"].as_str().unwrap_or_default());
            }
            Some("tool_use") => {
                let (id, state) = (text(part, "callID"), &part["state"]);
                output.add_tool_use(id, text(part, "tool").unwrap_or_default(), &state["input"]);
                let is_error = state["status"] == "error";
                let result = if is_error { &state["error"] } else { &state["output"] };
                output.add_tool_result(id, result, is_error);
            }
            Some("step_finish") => {
                self.is_answering = false;
                output.add_turn();
                // Each step reports its own usage and cost.
                if part["tokens"].is_object() {
                    output.add_usage(parse_usage(&part["tokens"]));
                }
                output.add_cost(&part["cost"]);
                output.problem = None;
            }
            Some("error") => output.problem = Some(error_message(&event["error"])),
            _ => {}
        }
    }
}

/// Parses token usage. Input tokens exclude cached ones; output tokens exclude reasoning tokens, unless the total
/// shows otherwise.
fn parse_usage(usage: &Value) -> Usage {
    let mut parsed = Usage {
        input: tokens(usage, "input"),
        output: tokens(usage, "output"),
        cache_read: tokens(&usage["cache"], "read"),
        cache_write: tokens(&usage["cache"], "write"),
        reasoning: tokens(usage, "reasoning"),
    };
    if tokens(usage, "total") != parsed.total() {
        parsed.output = parsed.output.saturating_add(parsed.reasoning);
    }
    parsed
}
