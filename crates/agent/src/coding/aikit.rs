//! The agent built into aikit: `aikit run --agent aikit --events`.
//!
//! Events have the form `{"payload": {"aikit_tool_use": {…}}}`; newer versions omit the prefix.

use super::EventFormat;
use super::output::{AgentOutput, error_message, text, tokens};
use bakeoff_core::Usage;
use serde_json::Value;

/// The answer is the last final text.
#[derive(Debug, Default)]
pub(super) struct Aikit;

impl EventFormat for Aikit {
    fn apply(&mut self, event: &Value, output: &mut AgentOutput) {
        for (name, payload) in event["payload"].as_object().into_iter().flatten() {
            match name.strip_prefix("aikit_").unwrap_or(name) {
                "text_final" => {
                    output.set_answer(text(payload, "content").map(str::to_owned));
                }
                "stream_message" if is_answer(payload) => {
                    output.set_answer(text(payload, "text").map(str::to_owned));
                }
                "tool_use" => {
                    let tool = text(payload, "tool_name").unwrap_or_default();
                    let input = payload.get("tool_input").unwrap_or(&payload["input"]);
                    output.add_tool_use(text(payload, "call_id"), tool, input);
                }
                "tool_result" => {
                    let is_error = payload["is_error"] == true;
                    output.add_tool_result(text(payload, "call_id"), &payload["output"], is_error);
                }
                "step_finish" => output.add_turn(),
                // Usage of the whole run so far.
                "token_usage_line" => output.usage = Some(parse_usage(&payload["usage"])),
                "quota_exceeded" => {
                    let message = text(&payload["info"], "raw_message");
                    output.problem =
                        Some(message.map_or_else(|| error_message(payload), str::to_owned));
                }
                _ => {}
            }
        }
    }
}

fn is_answer(message: &Value) -> bool {
    message["phase"] == "final" && message["role"] == "assistant" && message["kind"] == "message"
}

fn parse_usage(usage: &Value) -> Usage {
    Usage {
        input: tokens(usage, "input_tokens"),
        output: tokens(usage, "output_tokens"),
        cache_read: tokens(usage, "cache_read_tokens"),
        cache_write: tokens(usage, "cache_creation_tokens"),
        reasoning: tokens(usage, "reasoning_tokens"),
    }
}
