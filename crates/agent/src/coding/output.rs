//! The output of a coding agent, in a form common to all agents.

use bakeoff_core::{NanoDollars, ToolUse, Usage};
use serde_json::Value;

/// Maximum number of tool uses kept.
const MAX_TOOL_USES: usize = 10_000;

/// Maximum total size of tool arguments, and of tool names.
const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

/// Maximum size of the output kept of a tool use.
const MAX_RESULT_BYTES: usize = 10_000;

/// Maximum total size of outputs kept of tool uses.
const MAX_TOTAL_RESULT_BYTES: usize = 1024 * 1024;

/// Maximum length of an id.
const MAX_ID_BYTES: usize = 200;

/// Maximum size of an answer that arrives in parts.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Answer, tool uses and usage of a coding agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentOutput {
    /// Last text of the agent, if any.
    pub answer: Option<String>,
    /// Tool uses, in order. The arguments of the last ones are omitted if they exceed a limit.
    pub tool_uses: Vec<ToolUse>,
    /// Id and result of each tool use.
    pub tool_exchanges: Vec<ToolExchange>,
    /// Number of responses of its model.
    pub turns: Option<u32>,
    /// Token usage of all its calls.
    pub usage: Option<Usage>,
    /// Cost that the agent reports.
    pub cost: Option<NanoDollars>,
    /// Error message of the agent, if it failed.
    pub problem: Option<String>,
    /// Number of dropped bytes that are, or may be, part of the answer.
    pub dropped_answer_bytes: u64,
    /// Number of dropped events that are, or may be, tool uses.
    pub dropped_tool_uses: u64,
    /// Number of tool uses without their arguments.
    pub dropped_arguments: u64,
    argument_bytes: usize,
    name_bytes: usize,
    result_bytes: usize,
}

/// Id and result of a tool use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolExchange {
    /// Id that the agent gave; empty if it gave none.
    pub id: String,
    /// Result, unless the agent reported none.
    pub result: Option<ToolResult>,
}

/// Result of a tool use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// First part of the output.
    pub output: String,
    /// Number of bytes that were not kept.
    pub dropped_bytes: u64,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl AgentOutput {
    /// Returns whether the agent stopped at a limit in its own settings, such as a number of turns. This is a
    /// result of the agent, not an error of the provider.
    pub fn hit_own_limit(&self) -> bool {
        self.problem.as_deref().is_some_and(|problem| problem.starts_with("error_max_"))
    }

    /// Adds a tool use. Without an id, no result can be added.
    pub(super) fn add_tool_use(&mut self, id: Option<&str>, name: &str, arguments: &Value) {
        let name_fits = self.name_bytes + name.len() <= MAX_ARGUMENT_BYTES;
        if self.tool_uses.len() == MAX_TOOL_USES || !name_fits {
            self.dropped_tool_uses += 1;
            return;
        }
        self.name_bytes += name.len();
        let bytes = arguments.to_string().len();
        let fits = self.argument_bytes + bytes <= MAX_ARGUMENT_BYTES;
        let arguments = if fits { arguments.clone() } else { Value::Null };
        self.argument_bytes += if fits { bytes } else { 0 };
        self.dropped_arguments += u64::from(!fits);
        self.tool_uses.push(ToolUse::new(name, arguments));
        let id = id.filter(|id| id.len() <= MAX_ID_BYTES).unwrap_or_default().to_owned();
        self.tool_exchanges.push(ToolExchange { id, result: None });
    }

    /// Adds the result of the tool use with that id; ignores it if there is none.
    pub(super) fn add_tool_result(&mut self, id: Option<&str>, output: &Value, is_error: bool) {
        let Some(id) = id else { return };
        let last = self.tool_exchanges.iter_mut().rev().find(|exchange| exchange.id == id);
        let Some(exchange) = last else { return };
        let text = result_text(output);
        let remaining = MAX_TOTAL_RESULT_BYTES - self.result_bytes;
        let kept = text.floor_char_boundary(remaining.min(MAX_RESULT_BYTES));
        self.result_bytes += kept;
        exchange.result = Some(ToolResult {
            output: text[..kept].to_owned(),
            dropped_bytes: (text.len() - kept) as u64,
            is_error,
        });
    }

    pub(super) fn add_usage(&mut self, usage: Usage) {
        *self.usage.get_or_insert_default() += usage;
    }

    pub(super) fn add_turn(&mut self) {
        let turns = self.turns.get_or_insert(0);
        *turns = turns.saturating_add(1);
    }

    pub(super) fn add_cost(&mut self, value: &Value) {
        if let Some(cost) = dollars(value) {
            *self.cost.get_or_insert_default() += cost;
        }
    }

    /// Records a line that could not be parsed because of its size.
    pub(super) fn drop_line(&mut self, bytes: u64) {
        self.dropped_answer_bytes = self.dropped_answer_bytes.saturating_add(bytes);
        self.dropped_tool_uses += 1;
    }

    /// Replaces the answer.
    pub(super) fn set_answer(&mut self, answer: Option<String>) {
        self.answer = answer;
        self.dropped_answer_bytes = 0;
    }

    /// Appends to the answer.
    pub(super) fn append_answer(&mut self, text: &str) {
        let answer = self.answer.get_or_insert_default();
        let remaining = MAX_ANSWER_BYTES.saturating_sub(answer.len());
        let (kept, rest) = text.split_at(text.floor_char_boundary(remaining));
        answer.push_str(kept);
        self.dropped_answer_bytes += rest.len() as u64;
    }
}

/// Returns the output of a tool as text: a string, the texts of a list of parts, or else JSON.
fn result_text(output: &Value) -> String {
    let content = match &output["content"] {
        Value::Null => output,
        content => content,
    };
    let part = |part: &Value| part["text"].as_str().map(str::to_owned);
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => match parts.iter().map(part).collect::<Option<Vec<_>>>() {
            Some(texts) => texts.join("\n"),
            None => content.to_string(),
        },
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Parses an amount in dollars.
pub(super) fn dollars(value: &Value) -> Option<NanoDollars> {
    let nanos = (value.as_f64()? * 1e9).round();
    (nanos.is_finite() && nanos >= 0.0).then_some(NanoDollars(nanos as i64))
}

/// Returns a number of tokens; 0 if it is missing.
pub(super) fn tokens(usage: &Value, name: &str) -> u64 {
    usage[name].as_u64().unwrap_or(0)
}

/// Returns the text at a key, unless it is empty.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value[name].as_str().filter(|text| !text.is_empty())
}

/// Returns the message of an error from the places where agents put it, or else the whole value.
pub(super) fn error_message(error: &Value) -> String {
    let nested = ["/data/message", "/message", "/error/message", "/error"];
    let found = nested.iter().find_map(|path| error.pointer(path)?.as_str());
    let text = match (found, error.as_str()) {
        (Some(message), _) | (None, Some(message)) => message.to_owned(),
        (None, None) => error.to_string(),
    };
    // Classification needs the status in the text.
    match error.pointer("/data/statusCode").or(error.get("status")).and_then(Value::as_u64) {
        Some(status) => format!("{status}: {text}"),
        None => text,
    }
}
