//! Cursor's agent: `--print --output-format stream-json`.

use super::Dialect;
use super::recent::{Noted, Recent};
use super::said::{Said, text, tokens};
use bakeoff_core::Usage;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// Calls that have been noted: each comes when it starts and when it is done.
    seen: Recent<()>,
}

impl Dialect for Cursor {
    fn hear(&mut self, event: &Value, said: &mut Said) {
        match event["type"].as_str() {
            Some("assistant") => {
                said.take_turn();
                said.answer_with(None);
                for part in event["message"]["content"].as_array().into_iter().flatten() {
                    said.say(part["text"].as_str().unwrap_or_default());
                }
            }
            Some("tool_call") => self.tool(event, said),
            Some("result") => {
                if event["usage"].is_object() {
                    said.usage = Some(read(&event["usage"]));
                }
                let result = text(event, "result").map(str::to_owned);
                if event["is_error"] == true {
                    said.problem = Some(result.unwrap_or_else(|| "error".to_owned()));
                    said.answer_with(None);
                } else {
                    said.problem = None;
                    if result.is_some() {
                        said.answer_with(result);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Cursor {
    /// `{"shellToolCall": {"args": {…}}}`
    fn tool(&mut self, event: &Value, said: &mut Said) {
        if text(event, "call_id").is_some_and(|id| self.seen.note(id, ()) == Noted::Again) {
            return;
        }
        for (key, call) in event["tool_call"].as_object().into_iter().flatten() {
            if let Some(name) = key.strip_suffix("ToolCall") {
                said.tool(name, &call["args"]);
            } else if key == "function" {
                said.tool(text(call, "name").unwrap_or_default(), &call["arguments"]);
            }
        }
    }
}

/// Input tokens do not include those of the cache.
fn read(usage: &Value) -> Usage {
    Usage {
        input: tokens(usage, "inputTokens"),
        output: tokens(usage, "outputTokens"),
        cache_read: tokens(usage, "cacheReadTokens"),
        cache_write: tokens(usage, "cacheWriteTokens"),
        reasoning: 0,
    }
}
