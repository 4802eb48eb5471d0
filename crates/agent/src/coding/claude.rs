//! Claude Code: `--output-format stream-json --verbose`.

use super::Dialect;
use super::recent::{Noted, Recent};
use super::said::{Said, message, money, text, tokens};
use bakeoff_core::Usage;
use serde_json::Value;

/// What is known before the result comes; it never comes when the agent is ended.
#[derive(Debug, Default)]
pub(super) struct Claude {
    /// By message: each comes several times, once for each of its parts.
    recent: Recent<Option<Usage>>,
    /// Of messages before those.
    earlier: Option<Usage>,
    messages: u32,
    has_result: bool,
}

impl Dialect for Claude {
    fn hear(&mut self, event: &Value, said: &mut Said) {
        match event["type"].as_str() {
            Some("assistant") => self.spoke(event, said),
            Some("result") => self.concluded(event, said),
            _ => {}
        }
    }

    fn end(&mut self, said: &mut Said) {
        if !self.has_result && self.messages > 0 {
            said.turns = Some(self.messages);
            let known = self.recent.values().copied().chain([self.earlier]);
            known.flatten().for_each(|usage| said.use_up(usage));
        }
    }
}

impl Claude {
    fn spoke(&mut self, event: &Value, said: &mut Said) {
        let message = &event["message"];
        if let Some(id) = text(message, "id")
            && let Noted::New(oldest) = self.recent.note(id, read(&message["usage"]))
        {
            self.messages = self.messages.saturating_add(1);
            if let Some(usage) = oldest.flatten() {
                *self.earlier.get_or_insert_default() += usage;
            }
        }
        // Helpers of the agent use tools too, but what they say is not its answer.
        let is_own = event["parent_tool_use_id"].is_null();
        for part in message["content"].as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("tool_use") => {
                    said.tool(text(part, "name").unwrap_or_default(), &part["input"]);
                }
                Some("text") if is_own => {
                    said.answer_with(text(part, "text").map(str::to_owned));
                }
                _ => {}
            }
        }
    }

    fn concluded(&mut self, event: &Value, said: &mut Said) {
        self.has_result = true;
        said.usage = read(&event["usage"]);
        said.cost = money(&event["total_cost_usd"]);
        said.turns = event["num_turns"].as_u64().and_then(|turns| turns.try_into().ok());
        let subtype = text(event, "subtype").unwrap_or("success");
        if event["is_error"] == true || subtype != "success" {
            let result = text(event, "result").map(str::to_owned);
            let errors = event.get("errors").map(message);
            said.problem = Some(result.or(errors).unwrap_or_else(|| subtype.to_owned()));
            // The last words of an agent that gave up are no answer.
            said.answer_with(None);
        } else {
            said.problem = None;
            if let Some(result) = text(event, "result") {
                said.answer_with(Some(result.to_owned()));
            }
        }
    }
}

/// Input tokens do not include those of the cache. What is not told is not known.
fn read(usage: &Value) -> Option<Usage> {
    usage.is_object().then(|| Usage {
        input: tokens(usage, "input_tokens"),
        output: tokens(usage, "output_tokens"),
        cache_read: tokens(usage, "cache_read_input_tokens"),
        cache_write: tokens(usage, "cache_creation_input_tokens"),
        reasoning: 0,
    })
}
