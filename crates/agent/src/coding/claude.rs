//! Claude Code: `--output-format stream-json --verbose`.

use super::EventFormat;
use super::output::{AgentOutput, dollars, error_message, text, tokens};
use super::recent_ids::{InsertResult, RecentIds};
use bakeoff_core::Usage;
use serde_json::Value;

/// State before the `result` event, which is missing if the agent was terminated.
#[derive(Debug, Default)]
pub(super) struct Claude {
    /// Usage by message id: an event per part repeats the message.
    recent: RecentIds<Option<Usage>>,
    /// Sum of the usage of older messages.
    earlier: Option<Usage>,
    messages: u32,
    has_result: bool,
}

impl EventFormat for Claude {
    fn apply(&mut self, event: &Value, output: &mut AgentOutput) {
        match event["type"].as_str() {
            Some("assistant") => self.apply_message(event, output),
            Some("user") => apply_tool_results(event, output),
            Some("result") => self.apply_result(event, output),
            _ => {}
        }
    }

    fn finish(&mut self, output: &mut AgentOutput) {
        if !self.has_result && self.messages > 0 {
            output.turns = Some(self.messages);
            let usages = self.recent.values().copied().chain([self.earlier]);
            usages.flatten().for_each(|usage| output.add_usage(usage));
        }
    }
}

impl Claude {
    fn apply_message(&mut self, event: &Value, output: &mut AgentOutput) {
        let message = &event["message"];
        if let Some(id) = text(message, "id")
            && let InsertResult::New(oldest) =
                self.recent.insert(id, parse_usage(&message["usage"]))
        {
            self.messages = self.messages.saturating_add(1);
            if let Some(usage) = oldest.flatten() {
                *self.earlier.get_or_insert_default() += usage;
            }
        }
        // Tool uses of subagents count, but their text is not the answer.
        let is_main_agent = event["parent_tool_use_id"].is_null();
        for part in message["content"].as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("tool_use") => {
                    let name = text(part, "name").unwrap_or_default();
                    output.add_tool_use(text(part, "id"), name, &part["input"]);
                }
                Some("text") if is_main_agent => {
                    output.set_answer(text(part, "text").map(str::to_owned));
                }
                _ => {}
            }
        }
    }

    fn apply_result(&mut self, event: &Value, output: &mut AgentOutput) {
        self.has_result = true;
        output.usage = parse_usage(&event["usage"]);
        output.cost = dollars(&event["total_cost_usd"]);
        output.turns = event["num_turns"].as_u64().and_then(|turns| turns.try_into().ok());
        let subtype = text(event, "subtype").unwrap_or("success");
        if event["is_error"] == true || subtype != "success" {
            let result = text(event, "result").map(str::to_owned);
            let errors = event.get("errors").map(error_message);
            output.problem = Some(result.or(errors).unwrap_or_else(|| subtype.to_owned()));
            // The last text of an agent that failed is no answer.
            output.set_answer(None);
        } else {
            output.problem = None;
            if let Some(result) = text(event, "result") {
                output.set_answer(Some(result.to_owned()));
            }
        }
    }
}

/// Applies the results that the agent passes to its model.
fn apply_tool_results(event: &Value, output: &mut AgentOutput) {
    for part in event["message"]["content"].as_array().into_iter().flatten() {
        if part["type"] == "tool_result" {
            let is_error = part["is_error"] == true;
            output.add_tool_result(text(part, "tool_use_id"), &part["content"], is_error);
        }
    }
}

/// Parses token usage; `None` if it is missing. Input tokens exclude cached ones.
fn parse_usage(usage: &Value) -> Option<Usage> {
    usage.is_object().then(|| Usage {
        input: tokens(usage, "input_tokens"),
        output: tokens(usage, "output_tokens"),
        cache_read: tokens(usage, "cache_read_input_tokens"),
        cache_write: tokens(usage, "cache_creation_input_tokens"),
        reasoning: 0,
    })
}
