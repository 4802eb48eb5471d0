//! Validation of the keys and values of a check.
//!
//! Checks occur in suites and in cases of any format, so they are validated as JSON. The caller knows
//! the position.

use super::spec::{CHECK_COMMON, Field, MEMBER_KEYS, ValueType, kind_fields};
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
    problems_with(table, &CHECK_COMMON.fields().collect::<Vec<_>>())
}

/// Returns the problems of a check that has these keys in addition to those of its kind.
fn problems_with(table: &Map<String, Value>, common: &[&Field]) -> Vec<CheckProblem> {
    let Some(word) = table.get("kind").and_then(Value::as_str) else {
        let mut found = field_problems(table, common, "[[check]]");
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
    let mut fields = common.to_vec();
    fields.extend(&specific);
    let mut found = field_problems(table, &fields, &format!("the check `{word}`"));
    for (key, _) in table.iter().filter(|(key, _)| is_group(&fields, key)) {
        found.extend(member_problems(table, key));
    }
    found
}

fn is_group(fields: &[&Field], key: &str) -> bool {
    let field = fields.iter().find(|field| field.name == key);
    field.is_some_and(|field| matches!(field.value_type, ValueType::Checks))
}

/// Returns the problems of the checks in a group. Only the position of the group is known, so the message has
/// the number of the check.
fn member_problems(table: &Map<String, Value>, group: &str) -> Vec<CheckProblem> {
    let is_known = |field: &&Field| MEMBER_KEYS.contains(&field.name);
    let common: Vec<&Field> = CHECK_COMMON.fields().filter(is_known).collect();
    let mut found = Vec::new();
    for (number, member) in (1..).zip(members(table, group)) {
        let problems = problems_with(member, &common).into_iter();
        found.extend(problems.map(|problem| CheckProblem {
            key: Some(group.to_owned()),
            is_unknown_key: false,
            message: format!("check {number}: {}", problem.message),
            hint: problem.hint,
        }));
    }
    found
}

fn members<'a>(
    table: &'a Map<String, Value>,
    group: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    table.get(group).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Returns the check itself, or the checks within a group of kind `any`.
pub(crate) fn single_checks(table: &Map<String, Value>) -> Vec<&Map<String, Value>> {
    match table.get("kind").and_then(Value::as_str) {
        Some("any") => members(table, "checks").flat_map(single_checks).collect(),
        _ => vec![table],
    }
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
        ValueType::Checks => value
            .as_array()
            .is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object)),
        // Keys of checks have none of these types.
        ValueType::AnyCaseChoice(_)
        | ValueType::Connections { .. }
        | ValueType::ChoiceList(_)
        | ValueType::TextListMap
        | ValueType::Table(_)
        | ValueType::Tables(_)
        | ValueType::NamedTables(_)
        | ValueType::OpenTables => false,
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
