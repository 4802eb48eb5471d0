//! Is a value what the task asks for? Strict about meaning, lenient about notation.
//!
//! Notation that is put right: `"3"` for 3, `3.0` for the whole number 3, `"true"` and `"yes"` for
//! true, a number or truth value for a text, another case of an option's letters, white space
//! around options and numbers, and JSON within a text for a list or an object. Null is absent.

use crate::task::{Field, FieldType};
use serde_json::{Map, Number, Value};

/// The answer about an item, with every field of the task; or why it is none.
pub(crate) fn answer(fields: &[Field], given: &Map<String, Value>) -> Result<Vec<Value>, String> {
    fields.iter().map(|field| one(field, given.get(&field.name))).collect()
}

/// The value of one field, or why it is none.
pub(crate) fn one(field: &Field, given: Option<&Value>) -> Result<Value, String> {
    match (given, &field.default) {
        (None | Some(Value::Null), Some(default)) => Ok(default.clone()),
        (None | Some(Value::Null), None) if field.required => {
            Err(format!("`{}` is missing", field.name))
        }
        (None | Some(Value::Null), None) => Ok(Value::Null),
        (Some(value), _) => {
            let value = of_kind(field, value).map_err(|why| format!("`{}` {why}", field.name))?;
            strictly(field, &value).map_err(|why| format!("`{}` {why}", field.name))?;
            Ok(value)
        }
    }
}

/// Whether a value of the right notation is one that the field may have.
pub(crate) fn strictly(field: &Field, value: &Value) -> Result<(), String> {
    if !is_kind(field.kind, value) {
        return Err(format!("is {}, not a value of type {}", shown(value), field.kind));
    }
    if let Value::Array(items) = value
        && let Some(item) = items.iter().find(|item| !is_kind(field.items, item))
    {
        return Err(format!("holds {}, not a value of type {}", shown(item), field.items));
    }
    if let Some(options) = &field.options
        && !options.iter().any(|option| same(option, value))
    {
        let options: Vec<String> = options.iter().map(Value::to_string).collect();
        return Err(format!("is {}, not one of {}", shown(value), options.join(", ")));
    }
    let (size, unit) = match value {
        Value::Number(number) => (number.as_f64().unwrap_or(f64::NAN), ""),
        Value::String(text) => (text.chars().count() as f64, " characters long"),
        Value::Array(items) => (items.len() as f64, " values long"),
        _ => return Ok(()),
    };
    match (field.min, field.max) {
        (Some(least), _) if size < least || size.is_nan() => {
            Err(format!("is {size}{unit}, and must be at least {least}"))
        }
        (_, Some(most)) if size > most || size.is_nan() => {
            Err(format!("is {size}{unit}, and must be at most {most}"))
        }
        _ => Ok(()),
    }
}

fn is_kind(kind: FieldType, value: &Value) -> bool {
    match kind {
        FieldType::String => value.is_string(),
        FieldType::Number => value.is_number(),
        FieldType::Integer => value.is_i64() || value.is_u64(),
        FieldType::Boolean => value.is_boolean(),
        FieldType::Array => value.is_array(),
        FieldType::Object => value.is_object(),
    }
}

/// The value in the notation of its type.
fn of_kind(field: &Field, value: &Value) -> Result<Value, String> {
    if let Some(options) = &field.options
        && let Some(option) = meant(options, value)
    {
        return Ok(option.clone());
    }
    let wrong = |kind| format!("is {}, not a value of type {kind}", shown(value));
    match field.kind {
        FieldType::Array => {
            let items = match value {
                Value::Array(items) => items.clone(),
                Value::String(text) => match serde_json::from_str(text) {
                    Ok(Value::Array(items)) => items,
                    _ => return Err(wrong(field.kind)),
                },
                _ => return Err(wrong(field.kind)),
            };
            let items = items.iter().map(|item| scalar(field.items, item).ok_or(item));
            items.collect::<Result<Vec<Value>, &Value>>().map(Value::Array).map_err(|item| {
                format!("holds {}, not a value of type {}", shown(item), field.items)
            })
        }
        kind => scalar(kind, value).ok_or_else(|| wrong(kind)),
    }
}

fn scalar(kind: FieldType, value: &Value) -> Option<Value> {
    match (kind, value) {
        _ if is_kind(kind, value) => Some(value.clone()),
        (FieldType::String, Value::Number(_) | Value::Bool(_)) => {
            Some(Value::String(value.to_string()))
        }
        (FieldType::Integer, Value::Number(number)) => whole(number).map(Value::Number),
        (FieldType::Number | FieldType::Integer, Value::String(text)) => {
            let number: Number = serde_json::from_str(text.trim().trim_start_matches('+')).ok()?;
            scalar(kind, &Value::Number(number))
        }
        (FieldType::Boolean, Value::String(text)) => {
            match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" => Some(Value::Bool(true)),
                "false" | "no" => Some(Value::Bool(false)),
                _ => None,
            }
        }
        (FieldType::Object, Value::String(text)) => {
            serde_json::from_str(text).ok().filter(Value::is_object)
        }
        (FieldType::Array, Value::String(text)) => {
            serde_json::from_str(text).ok().filter(Value::is_array)
        }
        _ => None,
    }
}

/// A whole number, if it is one that is written with a point.
fn whole(number: &Number) -> Option<Number> {
    // Beyond this, floating point cannot tell neighbours apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_f64() {
        return Some(number.clone());
    }
    let value = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() <= EXACT)?;
    Some(Number::from(value as i64))
}

/// The option that is meant: the same value, or the only one that differs in letters' case alone.
fn meant<'o>(options: &'o [Value], value: &Value) -> Option<&'o Value> {
    if let Some(option) = options.iter().find(|option| same(option, value)) {
        return Some(option);
    }
    let word = |value: &Value| match value {
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    let wanted = word(value);
    let mut alike = options.iter().filter(|option| word(option) == wanted);
    alike.next().filter(|_| alike.next().is_none())
}

/// Equal values; 1 is 1.0.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => one == other,
    }
}

/// A value in an error message, not too long.
fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(kind: FieldType) -> Field {
        Field::new("f", kind)
    }

    fn given(field: Field, value: Value) -> Result<Value, String> {
        let given = json!({ "f": value }).as_object().cloned().unwrap_or_default();
        answer(&[field], &given).map(|mut values| values.remove(0))
    }

    #[test]
    fn notation_is_put_right_and_nothing_else() {
        use FieldType::*;
        for (kind, value, expected) in [
            (String, json!("a"), Some(json!("a"))),
            (String, json!(5), Some(json!("5"))),
            (String, json!(true), Some(json!("true"))),
            (String, json!(["a"]), None),
            (Number, json!("3"), Some(json!(3))),
            (Number, json!(" +2.5 "), Some(json!(2.5))),
            (Number, json!("three"), None),
            (Number, json!("3 apples"), None),
            (Number, json!(true), None),
            (Integer, json!(3.0), Some(json!(3))),
            (Integer, json!("3.0"), Some(json!(3))),
            (Integer, json!(3.5), None),
            (Integer, json!(1e300), None),
            (Boolean, json!("Yes"), Some(json!(true))),
            (Boolean, json!("false"), Some(json!(false))),
            (Boolean, json!(1), None),
            (Array, json!(["a", 1]), Some(json!(["a", "1"]))),
            (Array, json!("[\"a\"]"), Some(json!(["a"]))),
            (Array, json!("a, b"), None),
            (Array, json!([["a"]]), None),
            (Object, json!({"a": 1}), Some(json!({"a": 1}))),
            (Object, json!("{\"a\":1}"), Some(json!({"a": 1}))),
            (Object, json!("a"), None),
        ] {
            assert_eq!(given(field(kind), value.clone()).ok(), expected, "{kind} {value}");
        }
    }

    #[test]
    fn options_bounds_and_defaults() {
        let options = Some(vec![json!("Good"), json!("bad")]);
        let label = Field { options, ..field(FieldType::String) };
        assert_eq!(given(label.clone(), json!(" good ")), Ok(json!("Good")));
        let wrong = given(label.clone(), json!("fine")).unwrap_err();
        assert_eq!(wrong, "`f` is \"fine\", not one of \"Good\", \"bad\"");
        let twins = Field { options: Some(vec![json!("a"), json!("A")]), ..label.clone() };
        assert_eq!(given(twins.clone(), json!("A")), Ok(json!("A")));
        assert!(given(twins, json!(" a")).is_err(), "which one?");
        let numbers =
            Field { options: Some(vec![json!(1), json!(2)]), ..field(FieldType::Integer) };
        assert_eq!(given(numbers, json!("2")), Ok(json!(2)));

        let bounded = |kind| Field { min: Some(2.0), max: Some(3.0), ..field(kind) };
        let error = |kind, value| given(bounded(kind), value).unwrap_err();
        assert_eq!(error(FieldType::Number, json!(3.5)), "`f` is 3.5, and must be at most 3");
        assert_eq!(
            error(FieldType::String, json!("é")),
            "`f` is 1 characters long, and must be at least 2"
        );
        assert_eq!(
            error(FieldType::Array, json!(["a", "b", "c", "d"])),
            "`f` is 4 values long, and must be at most 3"
        );
        assert_eq!(given(bounded(FieldType::String), json!("éé")), Ok(json!("éé")));

        let missing = answer(std::slice::from_ref(&label), &Map::new()).unwrap_err();
        assert_eq!(missing, "`f` is missing");
        let optional = Field { required: false, ..label.clone() };
        assert_eq!(answer(&[optional], &Map::new()), Ok(vec![Value::Null]));
        let usual = Field { default: Some(json!("bad")), ..label };
        assert_eq!(given(usual, Value::Null), Ok(json!("bad")));
    }
}
