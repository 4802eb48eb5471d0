//! Gemini CLI: `--output-format stream-json`.

use super::Dialect;
use super::said::{Said, message, text, tokens};
use bakeoff_core::Usage;
use serde_json::Value;

/// The answer comes in pieces, and what is said after the last tool is the answer.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    is_speaking: bool,
}

impl Dialect for Gemini {
    fn hear(&mut self, event: &Value, said: &mut Said) {
        match event["type"].as_str() {
            Some("message") if event["role"] == "assistant" => {
                if !self.is_speaking || event["delta"] != true {
                    said.answer_with(None);
                    said.take_turn();
                }
                self.is_speaking = true;
                said.say(event["content"].as_str().unwrap_or_default());
            }
            Some("tool_use") => {
                self.is_speaking = false;
                said.tool(text(event, "tool_name").unwrap_or_default(), &event["parameters"]);
            }
            Some("tool_result") => self.is_speaking = false,
            Some("error") if event["severity"] != "warning" => {
                said.problem = Some(message(event));
            }
            Some("result") => {
                said.usage = event["stats"].is_object().then(|| read(&event["stats"]));
                let failed = event["status"] == "error";
                said.problem = failed.then(|| message(event));
            }
            _ => {}
        }
    }
}

/// Input tokens include those of the cache.
fn read(stats: &Value) -> Usage {
    let cached = tokens(stats, "cached");
    Usage {
        input: tokens(stats, "input_tokens").saturating_sub(cached),
        output: tokens(stats, "output_tokens"),
        cache_read: cached,
        ..Usage::default()
    }
}
