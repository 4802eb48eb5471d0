//! The form of a check: which keys it may have, and what may stand there.
//!
//! Checks stand in suites and in cases of any format, so all of them are looked at as JSON. Whoever
//! asks knows the place.

use super::spec::{CHECK_COMMON, Field, Shape, own_fields};
use super::tree::{expectation, lower_first};
use crate::problem::suggest;
use bakeoff_check::{KINDS, KindInfo};
use serde_json::{Map, Value};

/// Something wrong with a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The key that is meant; the whole check when absent.
    pub(crate) key: Option<String>,
    /// The key itself is wrong, and not its value.
    pub(crate) is_unknown: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Wrong {
    pub(crate) fn at(key: &str, message: impl Into<String>) -> Wrong {
        Wrong { key: Some(key.to_owned()), is_unknown: false, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Wrong {
        Wrong { hint: Some(hint.into()), ..self }
    }
}

/// Everything wrong with the form of a check.
pub(crate) fn wrong_with(table: &Map<String, Value>) -> Vec<Wrong> {
    let common = CHECK_COMMON.fields();
    let Some(word) = table.get("kind").and_then(Value::as_str) else {
        return wrong_fields(table, &common.collect::<Vec<_>>(), "[[check]]");
    };
    let Some(info) = KindInfo::find(word) else {
        let wrong = Wrong::at("kind", format!("unknown kind of check `{word}`"));
        let hint = suggest(word, KINDS.iter().map(|info| info.name));
        return vec![Wrong { hint, ..wrong }];
    };
    let own = own_fields(info);
    let mut fields: Vec<&Field> = common.collect();
    fields.extend(&own);
    wrong_fields(table, &fields, &format!("the check `{word}`"))
}

fn wrong_fields(table: &Map<String, Value>, fields: &[&Field], name: &str) -> Vec<Wrong> {
    let mut found = Vec::new();
    for (key, value) in table {
        match fields.iter().find(|field| field.name == key) {
            Some(field) => found.extend(wrong_value(value, field)),
            None => found.push(Wrong {
                is_unknown: true,
                hint: suggest(key, fields.iter().map(|field| field.name)),
                ..Wrong::at(key, format!("unknown key `{key}` in {name}"))
            }),
        }
    }
    for field in fields.iter().filter(|field| field.required && !table.contains_key(field.name)) {
        found.push(Wrong {
            key: None,
            is_unknown: false,
            message: format!("{name} has no `{}`", field.name),
            hint: Some(format!("add `{}`: {}", field.name, lower_first(field.about))),
        });
    }
    found
}

fn wrong_value(value: &Value, field: &Field) -> Option<Wrong> {
    if fits(value, &field.shape) {
        return None;
    }
    if let (Shape::Choice(words), Value::String(word)) = (&field.shape, value) {
        let wrong = Wrong::at(field.name, format!("`{}` cannot be {word:?}", field.name));
        return Some(Wrong { hint: suggest(word, words.iter().copied()), ..wrong });
    }
    let (expected, found) = (expectation(&field.shape), describe(value));
    let message = format!("`{}` must be {expected}, not {found}", field.name);
    let about = format!("`{}`: {}", field.name, lower_first(field.about));
    Some(Wrong::at(field.name, message).with_hint(about))
}

fn fits(value: &Value, shape: &Shape) -> bool {
    match shape {
        Shape::Text | Shape::Template => value.is_string(),
        Shape::Boolean => value.is_boolean(),
        Shape::Integer { least, most } => {
            value.as_i64().is_some_and(|number| (*least..=*most).contains(&number))
        }
        Shape::Number { least, most } => {
            value.as_f64().is_some_and(|number| (*least..=*most).contains(&number))
        }
        Shape::Choice(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Shape::Texts { some } => value.as_array().is_some_and(|items| {
            items.iter().all(Value::is_string) && !(*some && items.is_empty())
        }),
        Shape::TextMap => {
            value.as_object().is_some_and(|entries| entries.values().all(Value::is_string))
        }
        Shape::Open => value.is_object(),
        Shape::TextOrOpen => value.is_object() || value.is_string(),
        Shape::Any => true,
        // Checks have none of these.
        Shape::Connections { .. }
        | Shape::Words(_)
        | Shape::TextLists
        | Shape::Table(_)
        | Shape::Tables(_)
        | Shape::Named(_)
        | Shape::OpenList
        | Shape::Checks => false,
    }
}

/// What was written, in words.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => format!("the text {text:?}"),
        Value::Number(number) => number.to_string(),
        Value::Bool(answer) => answer.to_string(),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    }
}
