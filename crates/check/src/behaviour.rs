//! Checks of how a model or an agent behaved: the tools it used, why it stopped, whether it refused.

use crate::incomplete::{all_arguments, all_tools, whole_output};
use crate::info::{KindInfo, ParameterType, optional, required};
use crate::parameters::{Parameters, missing};
use crate::text::regex;
use crate::words::excerpt;
use crate::{CannotSay, Error, Finding, refusal};
use bakeoff_core::{Attempt, FinishReason, ToolUse};
use regex::Regex;
use serde_json::{Map, Value};

/// How the target must have behaved.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// A tool was called.
    ToolCalled {
        /// Its name.
        name: String,
        /// What its arguments must have.
        arguments: Map<String, Value>,
        /// Patterns for some of its arguments.
        patterns: Vec<(String, Regex)>,
    },
    /// Tools were called in this order; others may come between.
    ToolOrder(Vec<String>),
    /// Why the model stopped.
    FinishReason(String),
    /// The answer is a refusal.
    IsRefusal,
}

pub(crate) const TOOL_CALLED: KindInfo = KindInfo::new(
    "tool_called",
    "A tool was called, with arguments that have at least these.",
    &[
        required("name", ParameterType::Template, "The tool's name."),
        optional(
            "args",
            ParameterType::ValueTable,
            "Arguments that the call must have; tables are compared in the same way, lists and other values as wholes.",
        ),
        optional(
            "args_match",
            ParameterType::TemplateTable,
            "Regular expressions for arguments; of an argument that is no text, for its JSON.",
        ),
    ],
    "kind = \"tool_called\"\nname = \"weather\"\nargs = { city = \"{{ expected }}\" }\nargs_match = { day = \"^(today|now)$\" }",
);

pub(crate) const TOOL_ORDER: KindInfo = KindInfo::new(
    "tool_order",
    "These tools were called in this order; other calls may come between.",
    &[required("names", ParameterType::Templates, "The tools' names.")],
    "kind = \"tool_order\"\nnames = [\"search\", \"answer\"]",
);

pub(crate) const FINISH_REASON: KindInfo = KindInfo::new(
    "finish_reason",
    "The model stopped for this reason: `stop`, `length`, `tool_calls`, `content_filter`, or the provider's own word.",
    &[required("value", ParameterType::Template, "The reason.")],
    "kind = \"finish_reason\"\nvalue = \"stop\"",
);

pub(crate) const IS_REFUSAL: KindInfo = KindInfo::new(
    "is_refusal",
    "The answer begins like a refusal, or the provider cut it off for its content.",
    &[],
    "kind = \"is_refusal\"\nnegate = true",
);

impl Behaviour {
    pub(crate) fn build(
        name: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<Behaviour>, Error> {
        Ok(Some(match name {
            "tool_called" => Behaviour::ToolCalled {
                name: parameters.some_text("name")?,
                arguments: parameters.table("args").cloned().unwrap_or_default(),
                patterns: patterns(parameters)?,
            },
            "tool_order" => Behaviour::ToolOrder(parameters.some_texts("names")?),
            "finish_reason" => Behaviour::FinishReason(parameters.some_text("value")?),
            "is_refusal" => Behaviour::IsRefusal,
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, attempt: &Attempt) -> Result<Finding, CannotSay> {
        Ok(match self {
            Behaviour::ToolCalled { name, arguments, patterns } => {
                let fits = |used: &&ToolUse| {
                    let matches = |(key, pattern): &(String, Regex)| {
                        used.arguments.get(key).is_some_and(|value| match value {
                            Value::String(text) => pattern.is_match(text),
                            other => pattern.is_match(&other.to_string()),
                        })
                    };
                    let has = |(key, wanted): (&String, &Value)| {
                        used.arguments.get(key).is_some_and(|value| includes(value, wanted))
                    };
                    arguments.iter().all(has) && patterns.iter().all(matches)
                };
                let calls = || attempt.tool_uses.iter().filter(|used| used.name == *name);
                let found = calls().find(fits);
                if found.is_none() {
                    all_tools(attempt)?;
                    if calls().any(|used| used.arguments.is_null()) {
                        all_arguments(attempt)?;
                    }
                }
                match (found, calls().next()) {
                    (Some(used), _) => Finding::new(
                        true,
                        format!("{name} was called with {}", excerpt(&used.arguments.to_string())),
                    ),
                    (None, Some(used)) => Finding::new(
                        false,
                        format!(
                            "{name} was called with other arguments: {}",
                            excerpt(&used.arguments.to_string())
                        ),
                    ),
                    (None, None) => {
                        Finding::new(false, format!("{name} was not called; {}", called(attempt)))
                    }
                }
            }
            Behaviour::ToolOrder(names) => {
                let mut wanted = names.iter().peekable();
                for used in &attempt.tool_uses {
                    wanted.next_if(|name| **name == used.name);
                }
                let absent = wanted.next();
                if absent.is_some() {
                    all_tools(attempt)?;
                }
                match absent {
                    None => Finding::new(true, called(attempt)),
                    Some(name) => Finding::new(
                        false,
                        format!("{name} did not come in its turn; {}", called(attempt)),
                    ),
                }
            }
            Behaviour::FinishReason(wanted) => {
                let found = attempt
                    .finish
                    .as_ref()
                    .map(word)
                    .ok_or_else(|| CannotSay("nobody knows why it stopped".to_owned()))?;
                Finding::new(found == wanted, format!("stopped because of {found:?}"))
            }
            Behaviour::IsRefusal => {
                if !refusal::is_settled(attempt) {
                    whole_output(attempt)?;
                }
                refusal::find(&attempt.output, attempt)
            }
        })
    }
}

fn patterns(parameters: Parameters<'_>) -> Result<Vec<(String, Regex)>, Error> {
    let Some(table) = parameters.table("args_match") else { return Ok(Vec::new()) };
    table
        .iter()
        .map(|(key, pattern)| {
            let pattern = pattern.as_str().ok_or_else(|| missing("args_match"))?;
            Ok((key.clone(), regex("args_match", pattern, false)?))
        })
        .collect()
}

/// Whether a value has all that is wanted: the entries of a table, any other value as it is.
fn includes(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(entries), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| entries.get(key).is_some_and(|value| includes(value, wanted))),
        _ => crate::structure::same(value, wanted),
    }
}

/// The tools that were called, in words.
fn called(attempt: &Attempt) -> String {
    const SHOWN: usize = 10;
    let names: Vec<&str> =
        attempt.tool_uses.iter().take(SHOWN).map(|used| used.name.as_str()).collect();
    match (names.is_empty(), attempt.tool_uses.len() > SHOWN) {
        (true, _) => "no tool was called".to_owned(),
        (false, false) => format!("called: {}", names.join(", ")),
        (false, true) => format!("called: {}, …", names.join(", ")),
    }
}

fn word(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Other(word) => word,
    }
}
