//! Gemini CLI: `--output-format stream-json`.

use super::EventFormat;
use super::output::{AgentOutput, error_message, text, tokens};
use bakeoff_core::Usage;
use serde_json::Value;

/// The answer arrives in parts; it is the text after the last tool use.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    is_answering: bool,
}

impl EventFormat for Gemini {
    fn apply(&mut self, event: &Value, output: &mut AgentOutput) {
        match event["type"].as_str() {
            Some("message") if event["role"] == "assistant" => {
                if !self.is_answering || event["delta"] != true {
                    output.set_answer(None);
                    output.add_turn();
                }
                self.is_answering = true;
                output.append_answer(event["content"].as_str().unwrap_or_default());
            }
            Some("tool_use") => {
                self.is_answering = false;
                let name = text(event, "tool_name").unwrap_or_default();
                output.add_tool_use(text(event, "tool_id"), name, &event["parameters"]);
            }
            Some("tool_result") => {
                self.is_answering = false;
                let is_error = event["status"] == "error";
                let result = if is_error { &event["error"] } else { &event["output"] };
                output.add_tool_result(text(event, "tool_id"), result, is_error);
            }
            Some("error") if event["severity"] != "warning" => {
                output.problem = Some(error_message(event));
            }
            Some("result") => {
                output.usage = event["stats"].is_object().then(|| parse_usage(&event["stats"]));
                let has_failed = event["status"] == "error";
                output.problem = has_failed.then(|| error_message(event));
            }
            _ => {}
        }
    }
}

/// Parses token usage. Input tokens include cached ones.
fn parse_usage(stats: &Value) -> Usage {
    let cached = tokens(stats, "cached");
    Usage {
        input: tokens(stats, "input_tokens").saturating_sub(cached),
        output: tokens(stats, "output_tokens"),
        cache_read: cached,
        ..Usage::default()
    }
}
