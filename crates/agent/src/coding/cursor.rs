//! Cursor Agent: `--print --output-format stream-json`.

use super::EventFormat;
use super::output::{AgentOutput, text, tokens};
use super::recent_ids::{InsertResult, RecentIds};
use bakeoff_core::Usage;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// Ids of tool calls: a call has an event at its start and one at its end.
    seen: RecentIds<()>,
}

impl EventFormat for Cursor {
    fn apply(&mut self, event: &Value, output: &mut AgentOutput) {
        match event["type"].as_str() {
            Some("assistant") => {
                output.add_turn();
                output.set_answer(None);
                for part in event["message"]["content"].as_array().into_iter().flatten() {
                    output.append_answer(part["text"].as_str().unwrap_or_default());
                }
            }
            Some("tool_call") => self.apply_tool_call(event, output),
            Some("result") => {
                if event["usage"].is_object() {
                    output.usage = Some(parse_usage(&event["usage"]));
                }
                let result = text(event, "result").map(str::to_owned);
                if event["is_error"] == true {
                    output.problem = Some(result.unwrap_or_else(|| "error".to_owned()));
                    output.set_answer(None);
                } else {
                    output.problem = None;
                    if result.is_some() {
                        output.set_answer(result);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Cursor {
    /// Applies `{"shellToolCall": {"args": {…}, "result": {"success": {…}}}}`.
    fn apply_tool_call(&mut self, event: &Value, output: &mut AgentOutput) {
        let id = text(event, "call_id");
        let is_new = id.is_none_or(|id| self.seen.insert(id, ()) != InsertResult::Replaced);
        for (key, call) in event["tool_call"].as_object().into_iter().flatten() {
            let (name, arguments) = match key.strip_suffix("ToolCall") {
                Some(name) => (name, &call["args"]),
                None if key == "function" => {
                    (text(call, "name").unwrap_or_default(), &call["arguments"])
                }
                None => continue,
            };
            if is_new {
                output.add_tool_use(id, name, arguments);
            }
            if let Some(result) = call.get("result") {
                let success = result.get("success");
                output.add_tool_result(id, success.unwrap_or(result), success.is_none());
            }
        }
    }
}

/// Parses token usage. Input tokens exclude cached ones.
fn parse_usage(usage: &Value) -> Usage {
    Usage {
        input: tokens(usage, "inputTokens"),
        output: tokens(usage, "outputTokens"),
        cache_read: tokens(usage, "cacheReadTokens"),
        cache_write: tokens(usage, "cacheWriteTokens"),
        reasoning: 0,
    }
}
