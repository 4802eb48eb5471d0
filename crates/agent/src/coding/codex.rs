//! Codex CLI: `exec --json`.

use super::EventFormat;
use super::output::{AgentOutput, error_message, text, tokens};
use super::recent_ids::{InsertResult, RecentIds};
use bakeoff_core::Usage;
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(super) struct Codex {
    /// Ids of items: an item has an event at its start and one at its end.
    seen: RecentIds<()>,
}

impl EventFormat for Codex {
    fn apply(&mut self, event: &Value, output: &mut AgentOutput) {
        match event["type"].as_str() {
            Some("item.started" | "item.completed") => self.apply_item(event, output),
            Some("turn.completed") => {
                if event["usage"].is_object() {
                    output.add_usage(parse_usage(&event["usage"]));
                }
                output.problem = None;
            }
            Some("turn.failed" | "error") => output.problem = Some(error_message(event)),
            _ => {}
        }
    }
}

impl Codex {
    fn apply_item(&mut self, event: &Value, output: &mut AgentOutput) {
        let item = &event["item"];
        let is_complete = event["type"] == "item.completed";
        let kind = text(item, "type").or(text(item, "item_type")).unwrap_or_default();
        match kind {
            "agent_message" | "assistant_message" if is_complete => {
                output.add_turn();
                output.set_answer(text(item, "text").map(str::to_owned));
            }
            "command_execution" => {
                self.apply_tool(item, kind, &json!({"command": item["command"]}), output);
                if is_complete {
                    let is_error = item["exit_code"].as_i64().is_some_and(|code| code != 0);
                    output.add_tool_result(text(item, "id"), &item["aggregated_output"], is_error);
                }
            }
            "file_change" => {
                self.apply_tool(item, kind, &json!({"changes": item["changes"]}), output);
                if is_complete {
                    let is_error = item["status"] == "failed";
                    output.add_tool_result(text(item, "id"), &item["status"], is_error);
                }
            }
            "web_search" => self.apply_tool(item, kind, &json!({"query": item["query"]}), output),
            "mcp_tool_call" => {
                let tool = text(item, "tool").unwrap_or(kind);
                self.apply_tool(item, tool, &item["arguments"], output);
                if is_complete {
                    let is_error = !item["error"].is_null();
                    let result = if is_error { &item["error"] } else { &item["result"] };
                    output.add_tool_result(text(item, "id"), result, is_error);
                }
            }
            _ => {}
        }
    }

    /// Adds a tool use, unless an earlier event of the item did.
    fn apply_tool(&mut self, item: &Value, name: &str, input: &Value, output: &mut AgentOutput) {
        let id = text(item, "id");
        if id.is_none_or(|id| self.seen.insert(id, ()) != InsertResult::Replaced) {
            output.add_tool_use(id, name, input);
        }
    }
}

/// Parses token usage. Input tokens include cached ones.
fn parse_usage(usage: &Value) -> Usage {
    let cached = tokens(usage, "cached_input_tokens");
    Usage {
        input: tokens(usage, "input_tokens").saturating_sub(cached),
        output: tokens(usage, "output_tokens"),
        cache_read: cached,
        cache_write: 0,
        reasoning: tokens(usage, "reasoning_output_tokens"),
    }
}
