//! What an agent said and did, whichever it was.

use bakeoff_core::{NanoDollars, ToolUse, Usage};
use serde_json::Value;

/// Most tool uses that are kept.
const MOST_TOOLS: usize = 10_000;

/// Most bytes of what tools were given, together; and of their names.
const MOST_ARGUMENTS: usize = 1024 * 1024;

/// Most bytes of an answer that comes in pieces.
const MOST_ANSWER: usize = 1024 * 1024;

/// What an agent said and did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// Its answer: what it said last. Absent when it said nothing.
    pub answer: Option<String>,
    /// Tools that it used, in order. What the last ones were given is left out when it is too much.
    pub tool_uses: Vec<ToolUse>,
    /// How often its model spoke.
    pub turns: Option<u32>,
    /// Tokens of all its calls.
    pub usage: Option<Usage>,
    /// What it says that it cost.
    pub cost: Option<NanoDollars>,
    /// Why it gave up, in its own words.
    pub problem: Option<String>,
    /// Bytes of the answer, or of what may have been the answer, that were not kept.
    pub dropped_answer_bytes: u64,
    /// Uses of tools, or what may have been some, that were not kept.
    pub dropped_tool_uses: u64,
    /// Uses of tools whose arguments were not kept.
    pub dropped_arguments: u64,
    argument_bytes: usize,
    name_bytes: usize,
}

impl Said {
    /// Whether it gave up because of a limit that it was set itself, such as a number of turns: that
    /// is how it did its work, and nobody else's fault.
    pub fn met_own_limit(&self) -> bool {
        self.problem.as_deref().is_some_and(|problem| problem.starts_with("error_max_"))
    }

    pub(super) fn tool(&mut self, name: &str, arguments: &Value) {
        let has_room = self.name_bytes + name.len() <= MOST_ARGUMENTS;
        if self.tool_uses.len() == MOST_TOOLS || !has_room {
            self.dropped_tool_uses += 1;
            return;
        }
        self.name_bytes += name.len();
        let bytes = arguments.to_string().len();
        let fits = self.argument_bytes + bytes <= MOST_ARGUMENTS;
        let arguments = if fits { arguments.clone() } else { Value::Null };
        self.argument_bytes += if fits { bytes } else { 0 };
        self.dropped_arguments += u64::from(!fits);
        self.tool_uses.push(ToolUse { name: name.to_owned(), arguments });
    }

    pub(super) fn use_up(&mut self, usage: Usage) {
        *self.usage.get_or_insert_default() += usage;
    }

    pub(super) fn take_turn(&mut self) {
        let turns = self.turns.get_or_insert(0);
        *turns = turns.saturating_add(1);
    }

    pub(super) fn pay(&mut self, dollars: &Value) {
        if let Some(cost) = money(dollars) {
            *self.cost.get_or_insert_default() += cost;
        }
    }

    /// Something was said that nobody could read.
    pub(super) fn lose(&mut self, bytes: u64) {
        self.dropped_answer_bytes = self.dropped_answer_bytes.saturating_add(bytes);
        self.dropped_tool_uses += 1;
    }

    /// This is the answer now, whatever was said before.
    pub(super) fn answer_with(&mut self, answer: Option<String>) {
        self.answer = answer;
        self.dropped_answer_bytes = 0;
    }

    /// Appends to the answer.
    pub(super) fn say(&mut self, text: &str) {
        let answer = self.answer.get_or_insert_default();
        let room = MOST_ANSWER.saturating_sub(answer.len());
        let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        let (kept, rest) = text.split_at(end.unwrap_or(0));
        answer.push_str(kept);
        self.dropped_answer_bytes += rest.len() as u64;
    }
}

/// Dollars as agents write them.
pub(super) fn money(dollars: &Value) -> Option<NanoDollars> {
    let nanos = (dollars.as_f64()? * 1e9).round();
    (nanos.is_finite() && nanos >= 0.0).then_some(NanoDollars(nanos as i64))
}

/// A number of tokens; nothing when it is absent.
pub(super) fn tokens(usage: &Value, name: &str) -> u64 {
    usage[name].as_u64().unwrap_or(0)
}

/// The text at a key, when it is not empty.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value[name].as_str().filter(|text| !text.is_empty())
}

/// What an error says: the message of an object, at whatever depth agents put it, or all of it.
pub(super) fn message(error: &Value) -> String {
    let nested = ["/data/message", "/message", "/error/message", "/error"];
    let found = nested.iter().find_map(|path| error.pointer(path)?.as_str());
    let words = match (found, error.as_str()) {
        (Some(message), _) | (None, Some(message)) => message.to_owned(),
        (None, None) => error.to_string(),
    };
    // Statuses are told apart from the words.
    match error.pointer("/data/statusCode").or(error.get("status")).and_then(Value::as_u64) {
        Some(status) => format!("{status}: {words}"),
        None => words,
    }
}
