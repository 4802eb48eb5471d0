//! The output of a coding agent, in a form common to all agents.

use bakeoff_core::{NanoDollars, ToolUse, Usage};
use serde_json::Value;

/// Maximum number of tool uses kept.
const MAX_TOOL_USES: usize = 10_000;

/// Maximum total size of tool arguments, and of tool names.
const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

/// Maximum size of an answer that arrives in parts.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Answer, tool uses and usage of a coding agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentOutput {
    /// Last text of the agent, if any.
    pub answer: Option<String>,
    /// Tool uses, in order. The arguments of the last ones are omitted if they exceed a limit.
    pub tool_uses: Vec<ToolUse>,
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
}

impl AgentOutput {
    /// Returns whether the agent stopped at a limit in its own settings, such as a number of turns. This is a
    /// result of the agent, not an error of the provider.
    pub fn hit_own_limit(&self) -> bool {
        self.problem.as_deref().is_some_and(|problem| problem.starts_with("error_max_"))
    }

    pub(super) fn add_tool_use(&mut self, name: &str, arguments: &Value) {
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
        self.tool_uses.push(ToolUse { name: name.to_owned(), arguments });
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
        let end = (0..=remaining.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        let (kept, rest) = text.split_at(end.unwrap_or(0));
        answer.push_str(kept);
        self.dropped_answer_bytes += rest.len() as u64;
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
