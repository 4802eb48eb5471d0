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
            "command_execution" if self.is_new(item) => {
                output.add_tool_use(kind, &json!({"command": item["command"]}));
            }
            "file_change" if self.is_new(item) => {
                output.add_tool_use(kind, &json!({"changes": item["changes"]}));
            }
            "web_search" if self.is_new(item) => {
                output.add_tool_use(kind, &json!({"query": item["query"]}))
            }
            "mcp_tool_call" if self.is_new(item) => {
                let tool = text(item, "tool").unwrap_or(kind);
                output.add_tool_use(tool, &item["arguments"]);
            }
            _ => {}
        }
    }

    fn is_new(&mut self, item: &Value) -> bool {
        text(item, "id").is_none_or(|id| self.seen.insert(id, ()) != InsertResult::Replaced)
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
