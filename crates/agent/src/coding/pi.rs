//! pi: `--mode rpc`.
//!
//! The prompt is a JSON command on standard input, which stays open until pi reports that it has settled: only then
//! no retry, compaction or queued message follows.

use super::EventFormat;
use super::output::{AgentOutput, error_message, text, tokens};
use bakeoff_core::Usage;
use serde_json::Value;

/// The answer is the text of the last message.
#[derive(Debug, Default)]
pub(super) struct Pi {
    is_settled: bool,
    /// Whether the message of the current turn has been applied.
    has_message: bool,
}

impl EventFormat for Pi {
    fn apply(&mut self, event: &Value, output: &mut AgentOutput) {
        match event["type"].as_str() {
            Some("message_end") if event["message"]["role"] == "assistant" => {
                self.has_message = true;
                apply_message(&event["message"], output);
            }
            // It repeats the last message of the turn.
            Some("turn_end") if !std::mem::take(&mut self.has_message) => {
                apply_message(&event["message"], output);
            }
            Some("tool_execution_start") => {
                let name = text(event, "toolName").unwrap_or_default();
                output.add_tool_use(text(event, "toolCallId"), name, &event["args"]);
            }
            Some("tool_execution_end") => {
                let is_error = event["isError"] == true;
                output.add_tool_result(text(event, "toolCallId"), &event["result"], is_error);
            }
            Some("response") if event["success"] == false => {
                output.problem = Some(error_message(event));
                self.is_settled = true;
            }
            Some("agent_settled") => self.is_settled = true,
            _ => {}
        }
    }

    fn is_settled(&self) -> bool {
        self.is_settled
    }
}

fn apply_message(message: &Value, output: &mut AgentOutput) {
    output.add_turn();
    if message["usage"].is_object() {
        let usage = &message["usage"];
        // Each message reports its own usage and cost.
        output.add_usage(Usage {
            input: tokens(usage, "input"),
            output: tokens(usage, "output"),
            cache_read: tokens(usage, "cacheRead"),
            cache_write: tokens(usage, "cacheWrite"),
            reasoning: 0,
        });
        output.add_cost(&usage["cost"]["total"]);
    }
    let has_failed = message["stopReason"] == "error";
    output.problem =
        has_failed.then(|| text(message, "errorMessage").unwrap_or("error").to_owned());
    output.set_answer(None);
    for part in message["content"].as_array().into_iter().flatten() {
        if part["type"] == "text" && !has_failed {
            output.append_answer(part["text"].as_str().unwrap_or_default());
        }
    }
}
