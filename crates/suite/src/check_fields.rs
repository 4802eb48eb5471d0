//! Validation of the keys and values of a check.
//!
//! Checks occur in suites and in cases of any format, so they are validated as JSON. The caller knows
//! the position.

use super::spec::{CHECK_COMMON, Field, ValueType, kind_fields};
use super::tree::{expectation, lower_first};
use crate::problem::suggest;
use bakeoff_check::{KINDS, KindInfo};
use serde_json::{Map, Value};

/// Problem of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckProblem {
    /// Key at fault; absent for the whole check.
    pub(crate) key: Option<String>,
    /// Whether the key is unknown, as opposed to a problem of its value.
    pub(crate) is_unknown_key: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl CheckProblem {
    pub(crate) fn at(key: &str, message: impl Into<String>) -> CheckProblem {
        CheckProblem {
            key: Some(key.to_owned()),
            is_unknown_key: false,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> CheckProblem {
        CheckProblem { hint: Some(hint.into()), ..self }
    }
}

/// Returns the problems of the keys and values of a check.
pub(crate) fn problems(table: &Map<String, Value>) -> Vec<CheckProblem> {
    let common = CHECK_COMMON.fields();
    let Some(word) = table.get("kind").and_then(Value::as_str) else {
        let mut found = field_problems(table, &common.collect::<Vec<_>>(), "[[check]]");
        // The other keys depend on the kind.
        found.retain(|problem| !problem.is_unknown_key);
        return found;
    };
    let Some(info) = KindInfo::find(word) else {
        let problem = CheckProblem::at("kind", format!("unknown check kind `{word}`"));
        let hint = suggest(word, KINDS.iter().map(|info| info.name));
        return vec![CheckProblem { hint, ..problem }];
    };
    let specific = kind_fields(info);
    let mut fields: Vec<&Field> = common.collect();
    fields.extend(&specific);
    field_problems(table, &fields, &format!("the check `{word}`"))
}

fn field_problems(table: &Map<String, Value>, fields: &[&Field], name: &str) -> Vec<CheckProblem> {
    let mut found = Vec::new();
    for (key, value) in table {
        match fields.iter().find(|field| field.name == key) {
            Some(field) => found.extend(value_problem(value, field)),
            None => found.push(CheckProblem {
                is_unknown_key: true,
                hint: suggest(key, fields.iter().map(|field| field.name)),
                ..CheckProblem::at(key, format!("unknown key `{key}` in {name}"))
            }),
        }
    }
    for field in fields.iter().filter(|field| field.required && !table.contains_key(field.name)) {
        found.push(CheckProblem {
            key: None,
            is_unknown_key: false,
            message: format!("{name} has no `{}`", field.name),
            hint: Some(format!("add `{}`: {}", field.name, lower_first(field.about))),
        });
    }
    found
}

fn value_problem(value: &Value, field: &Field) -> Option<CheckProblem> {
    if has_type(value, &field.value_type) {
        return None;
    }
    if let (ValueType::Choice(words), Value::String(word)) = (&field.value_type, value) {
        let problem = CheckProblem::at(field.name, format!("`{}` cannot be {word:?}", field.name));
        return Some(CheckProblem { hint: suggest(word, words.iter().copied()), ..problem });
    }
    let (expected, found) = (expectation(&field.value_type), describe(value));
    let message = format!("`{}` must be {expected}, not {found}", field.name);
    let about = format!("`{}`: {}", field.name, lower_first(field.about));
    Some(CheckProblem::at(field.name, message).with_hint(about))
}

fn has_type(value: &Value, value_type: &ValueType) -> bool {
    match value_type {
        ValueType::Text | ValueType::Template => value.is_string(),
        ValueType::Boolean => value.is_boolean(),
        ValueType::Integer { min, max } => {
            value.as_i64().is_some_and(|number| (*min..=*max).contains(&number))
        }
        ValueType::Number { min, max } => {
            value.as_f64().is_some_and(|number| (*min..=*max).contains(&number))
        }
        ValueType::Choice(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        ValueType::TextList { non_empty } => value.as_array().is_some_and(|items| {
            items.iter().all(Value::is_string) && !(*non_empty && items.is_empty())
        }),
        ValueType::TextMap => {
            value.as_object().is_some_and(|entries| entries.values().all(Value::is_string))
        }
        ValueType::OpenTable => value.is_object(),
        ValueType::TextOrTable => value.is_object() || value.is_string(),
        ValueType::Any => true,
        // Keys of checks have none of these types.
        ValueType::Connections { .. }
        | ValueType::ChoiceList(_)
        | ValueType::TextListMap
        | ValueType::Table(_)
        | ValueType::Tables(_)
        | ValueType::NamedTables(_)
        | ValueType::OpenTables
        | ValueType::Checks => false,
    }
}

/// Describes a value, for messages.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => format!("the string {text:?}"),
        Value::Number(number) => number.to_string(),
        Value::Bool(answer) => answer.to_string(),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    }
}
