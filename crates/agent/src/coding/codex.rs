//! Codex CLI: `exec --json`.

use super::Dialect;
use super::recent::{Noted, Recent};
use super::said::{Said, message, text, tokens};
use bakeoff_core::Usage;
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(super) struct Codex {
    /// Items that have been noted: each comes when it starts and when it is done.
    seen: Recent<()>,
}

impl Dialect for Codex {
    fn hear(&mut self, event: &Value, said: &mut Said) {
        match event["type"].as_str() {
            Some("item.started" | "item.completed") => self.item(event, said),
            Some("turn.completed") => {
                if event["usage"].is_object() {
                    said.use_up(read(&event["usage"]));
                }
                said.problem = None;
            }
            Some("turn.failed" | "error") => said.problem = Some(message(event)),
            _ => {}
        }
    }
}

impl Codex {
    fn item(&mut self, event: &Value, said: &mut Said) {
        let item = &event["item"];
        let is_done = event["type"] == "item.completed";
        let kind = text(item, "type").or(text(item, "item_type")).unwrap_or_default();
        match kind {
            "agent_message" | "assistant_message" if is_done => {
                said.take_turn();
                said.answer_with(text(item, "text").map(str::to_owned));
            }
            "command_execution" if self.is_new(item) => {
                said.tool(kind, &json!({"command": item["command"]}));
            }
            "file_change" if self.is_new(item) => {
                said.tool(kind, &json!({"changes": item["changes"]}));
            }
            "web_search" if self.is_new(item) => said.tool(kind, &json!({"query": item["query"]})),
            "mcp_tool_call" if self.is_new(item) => {
                let tool = text(item, "tool").unwrap_or(kind);
                said.tool(tool, &item["arguments"]);
            }
            _ => {}
        }
    }

    fn is_new(&mut self, item: &Value) -> bool {
        text(item, "id").is_none_or(|id| self.seen.note(id, ()) != Noted::Again)
    }
}

/// Input tokens include those of the cache.
fn read(usage: &Value) -> Usage {
    let cached = tokens(usage, "cached_input_tokens");
    Usage {
        input: tokens(usage, "input_tokens").saturating_sub(cached),
        output: tokens(usage, "output_tokens"),
        cache_read: cached,
        cache_write: 0,
        reasoning: tokens(usage, "reasoning_output_tokens"),
    }
}
