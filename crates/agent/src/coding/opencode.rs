//! opencode: `run --format json`.

use super::Dialect;
use super::said::{Said, message, text, tokens};
use bakeoff_core::Usage;
use serde_json::Value;

/// What is said in the last step is the answer.
#[derive(Debug, Default)]
pub(super) struct OpenCode {
    is_speaking: bool,
}

impl Dialect for OpenCode {
    fn hear(&mut self, event: &Value, said: &mut Said) {
        let part = &event["part"];
        match event["type"].as_str() {
            Some("text") => {
                if !self.is_speaking {
                    said.answer_with(None);
                }
                self.is_speaking = true;
                said.say(part["text"].as_str().unwrap_or_default());
            }
            Some("tool_use") => {
                said.tool(text(part, "tool").unwrap_or_default(), &part["state"]["input"]);
            }
            Some("step_finish") => {
                self.is_speaking = false;
                said.take_turn();
                // Each step tells its own.
                if part["tokens"].is_object() {
                    said.use_up(read(&part["tokens"]));
                }
                said.pay(&part["cost"]);
                said.problem = None;
            }
            Some("error") => said.problem = Some(message(&event["error"])),
            _ => {}
        }
    }
}

/// Input tokens do not include those of the cache, and the output not what was thought, unless the
/// total says otherwise.
fn read(usage: &Value) -> Usage {
    let mut read = Usage {
        input: tokens(usage, "input"),
        output: tokens(usage, "output"),
        cache_read: tokens(&usage["cache"], "read"),
        cache_write: tokens(&usage["cache"], "write"),
        reasoning: tokens(usage, "reasoning"),
    };
    if tokens(usage, "total") != read.total() {
        read.output = read.output.saturating_add(read.reasoning);
    }
    read
}
