//! Checks of a target's behaviour: tool calls, finish reason, refusals.

use crate::completeness::{require_all_arguments, require_all_tools, require_whole_output};
use crate::excerpt::excerpt;
use crate::info::{KindInfo, ParameterType, optional, required};
use crate::parameters::{Parameters, missing};
use crate::text::regex;
use crate::{CheckFinding, Error, Inconclusive, refusal};
use bakeoff_core::{Attempt, FinishReason, ToolUse};
use regex::Regex;
use serde_json::{Map, Value};

/// A condition on the target's behaviour.
#[derive(Debug, Clone)]
pub enum BehaviourCheck {
    /// A tool was called.
    ToolCalled {
        /// The tool's name.
        name: String,
        /// Arguments that the call must include.
        arguments: Map<String, Value>,
        /// Patterns for arguments.
        patterns: Vec<(String, Regex)>,
    },
    /// Tools were called in this order; other calls may occur in between.
    ToolOrder(Vec<String>),
    /// The model stopped for this reason.
    FinishReason(String),
    /// The answer is a refusal.
    IsRefusal,
}

pub(crate) const TOOL_CALLED: KindInfo = KindInfo::new(
    "tool_called",
    "A tool was called with at least these arguments.",
    &[
        required("name", ParameterType::Template, "The tool's name."),
        optional(
            "args",
            ParameterType::ValueTable,
            "Arguments that the call must include; tables may have more entries, other values must be equal.",
        ),
        optional(
            "args_match",
            ParameterType::TemplateTable,
            "Regular expressions for arguments; an argument that is not a string is matched as JSON.",
        ),
    ],
    "kind = \"tool_called\"\nname = \"weather\"\nargs = { city = \"{{ expected }}\" }\nargs_match = { day = \"^(today|now)$\" }",
);

pub(crate) const TOOL_ORDER: KindInfo = KindInfo::new(
    "tool_order",
    "These tools were called in this order; other calls may occur in between.",
    &[required("names", ParameterType::Templates, "The tools' names.")],
    "kind = \"tool_order\"\nnames = [\"search\", \"answer\"]",
);

pub(crate) const FINISH_REASON: KindInfo = KindInfo::new(
    "finish_reason",
    "The model stopped for this reason: `stop`, `length`, `tool_calls`, `content_filter`, or a value specific to the provider.",
    &[required("value", ParameterType::Template, "The reason.")],
    "kind = \"finish_reason\"\nvalue = \"stop\"",
);

pub(crate) const IS_REFUSAL: KindInfo = KindInfo::new(
    "is_refusal",
    "The answer starts like a refusal, or the provider's content filter cut it off.",
    &[],
    "kind = \"is_refusal\"\nnegate = true",
);

impl BehaviourCheck {
    pub(crate) fn build(
        name: &str,
        parameters: Parameters<'_>,
    ) -> Result<Option<BehaviourCheck>, Error> {
        Ok(Some(match name {
            "tool_called" => BehaviourCheck::ToolCalled {
                name: parameters.non_empty_text("name")?,
                arguments: parameters.table("args").cloned().unwrap_or_default(),
                patterns: patterns(parameters)?,
            },
            "tool_order" => BehaviourCheck::ToolOrder(parameters.non_empty_texts("names")?),
            "finish_reason" => BehaviourCheck::FinishReason(parameters.non_empty_text("value")?),
            "is_refusal" => BehaviourCheck::IsRefusal,
            _ => return Ok(None),
        }))
    }

    pub(crate) fn find(&self, attempt: &Attempt) -> Result<CheckFinding, Inconclusive> {
        Ok(match self {
            BehaviourCheck::ToolCalled { name, arguments, patterns } => {
                let matches_call = |call: &&ToolUse| {
                    let matches = |(key, pattern): &(String, Regex)| {
                        call.arguments.get(key).is_some_and(|value| match value {
                            Value::String(text) => pattern.is_match(text),
                            other => pattern.is_match(&other.to_string()),
                        })
                    };
                    let has = |(key, expected): (&String, &Value)| {
                        call.arguments.get(key).is_some_and(|value| includes(value, expected))
                    };
                    arguments.iter().all(has) && patterns.iter().all(matches)
                };
                let named = || attempt.tool_uses.iter().filter(|call| call.name == *name);
                let calls = || named().filter(|call| !call.refused);
                let found = calls().find(matches_call);
                if found.is_none() {
                    require_all_tools(attempt)?;
                    if calls().any(|call| call.arguments.is_null()) {
                        require_all_arguments(attempt)?;
                    }
                }
                match (found, calls().next()) {
                    (Some(call), _) => CheckFinding::new(
                        true,
                        format!("{name} was called with {}", excerpt(&call.arguments.to_string())),
                    ),
                    (None, Some(call)) => CheckFinding::new(
                        false,
                        format!(
                            "{name} was called with other arguments: {}",
                            excerpt(&call.arguments.to_string())
                        ),
                    ),
                    (None, None) => CheckFinding::new(
                        false,
                        match named().next() {
                            Some(call) => format!(
                                "{name} was not run: the call was refused, with {}",
                                excerpt(&call.arguments.to_string())
                            ),
                            None => format!("{name} was not called; {}", list_calls(attempt)),
                        },
                    ),
                }
            }
            BehaviourCheck::ToolOrder(names) => {
                let mut expected = names.iter().peekable();
                for call in attempt.tool_uses.iter().filter(|call| !call.refused) {
                    expected.next_if(|name| **name == call.name);
                }
                let absent = expected.next();
                if absent.is_some() {
                    require_all_tools(attempt)?;
                }
                match absent {
                    None => CheckFinding::new(true, list_calls(attempt)),
                    Some(name) => CheckFinding::new(
                        false,
                        format!("{name} was not called in this order; {}", list_calls(attempt)),
                    ),
                }
            }
            BehaviourCheck::FinishReason(expected) => {
                let found = attempt
                    .finish
                    .as_ref()
                    .map(name_of)
                    .ok_or_else(|| Inconclusive("finish reason unknown".to_owned()))?;
                CheckFinding::new(found == expected, format!("finish reason {found:?}"))
            }
            BehaviourCheck::IsRefusal => {
                if !refusal::is_final(attempt) {
                    require_whole_output(attempt)?;
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

/// Returns whether a value includes the expected one: a table has at least its entries, any other value is
/// equal.
fn includes(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(entries), Value::Object(expected)) => expected
            .iter()
            .all(|(key, expected)| entries.get(key).is_some_and(|value| includes(value, expected))),
        _ => crate::structure::is_equal(value, expected),
    }
}

/// Lists the tools that were called.
fn list_calls(attempt: &Attempt) -> String {
    const MAX_SHOWN: usize = 10;
    let names: Vec<&str> =
        attempt.tool_uses.iter().take(MAX_SHOWN).map(|call| call.name.as_str()).collect();
    match (names.is_empty(), attempt.tool_uses.len() > MAX_SHOWN) {
        (true, _) => "no tool was called".to_owned(),
        (false, false) => format!("called: {}", names.join(", ")),
        (false, true) => format!("called: {}, …", names.join(", ")),
    }
}

fn name_of(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Other(name) => name,
    }
}
