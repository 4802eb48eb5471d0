//! Validation of answers against the fields of the task: strict about values, lenient about notation.
//!
//! Accepted notations: `"3"` for 3, `3.0` for the integer 3, `"true"` and `"yes"` for true, a number or
//! boolean for a string, options in different case, white space around options and numbers, and JSON
//! within a string for an array or object. Null counts as absent.
//!
//! Error texts are part of re-ask prompts, and thereby of their cache keys; see [`crate::reply`].

use crate::task::{Field, FieldType};
use serde_json::{Map, Number, Value};

/// Validates an answer and returns the values of all fields.
pub(crate) fn validate_answer(
    fields: &[Field],
    given: &Map<String, Value>,
) -> Result<Vec<Value>, String> {
    fields.iter().map(|field| validate_field(field, given.get(&field.name))).collect()
}

/// Validates the value of one field.
pub(crate) fn validate_field(field: &Field, given: Option<&Value>) -> Result<Value, String> {
    match (given, &field.default) {
        (None | Some(Value::Null), Some(default)) => Ok(default.clone()),
        (None | Some(Value::Null), None) if field.required => {
            Err(format!("`{}` is missing", field.name))
        }
        (None | Some(Value::Null), None) => Ok(Value::Null),
        (Some(value), _) => {
            let named = |problem| format!("`{}` {problem}", field.name);
            let value = normalize(field, value).map_err(named)?;
            check_value(field, &value).map_err(named)?;
            Ok(value)
        }
    }
}

/// Checks a normalised value against type, options and bounds of a field.
pub(crate) fn check_value(field: &Field, value: &Value) -> Result<(), String> {
    if !has_type(field.kind, value) {
        return Err(format!("is {}, not a value of type {}", format_value(value), field.kind));
    }
    if let Value::Array(items) = value
        && let Some(item) = items.iter().find(|item| !has_type(field.items, item))
    {
        return Err(format!("holds {}, not a value of type {}", format_value(item), field.items));
    }
    if let Some(options) = &field.options
        && !options.iter().any(|option| is_equal(option, value))
    {
        let options: Vec<String> = options.iter().map(Value::to_string).collect();
        return Err(format!("is {}, not one of {}", format_value(value), options.join(", ")));
    }
    let (size, unit) = match value {
        Value::Number(number) => (number.as_f64().unwrap_or(f64::NAN), ""),
        Value::String(text) => (text.chars().count() as f64, " characters long"),
        Value::Array(items) => (items.len() as f64, " values long"),
        _ => return Ok(()),
    };
    match (field.min, field.max) {
        (Some(min), _) if size < min || size.is_nan() => {
            Err(format!("is {size}{unit}, and must be at least {min}"))
        }
        (_, Some(max)) if size > max || size.is_nan() => {
            Err(format!("is {size}{unit}, and must be at most {max}"))
        }
        _ => Ok(()),
    }
}

fn has_type(kind: FieldType, value: &Value) -> bool {
    match kind {
        FieldType::String => value.is_string(),
        FieldType::Number => value.is_number(),
        FieldType::Integer => value.is_i64() || value.is_u64(),
        FieldType::Boolean => value.is_boolean(),
        FieldType::Array => value.is_array(),
        FieldType::Object => value.is_object(),
    }
}

/// Converts a value to the notation of its type.
fn normalize(field: &Field, value: &Value) -> Result<Value, String> {
    if let Some(options) = &field.options
        && let Some(option) = matching_option(options, value)
    {
        return Ok(option.clone());
    }
    let type_error = |kind| format!("is {}, not a value of type {kind}", format_value(value));
    match field.kind {
        FieldType::Array => {
            let items = match value {
                Value::Array(items) => items.clone(),
                Value::String(text) => match serde_json::from_str(text) {
                    Ok(Value::Array(items)) => items,
                    _ => return Err(type_error(field.kind)),
                },
                _ => return Err(type_error(field.kind)),
            };
            let items = items.iter().map(|item| normalize_scalar(field.items, item).ok_or(item));
            items.collect::<Result<Vec<Value>, &Value>>().map(Value::Array).map_err(|item| {
                format!("holds {}, not a value of type {}", format_value(item), field.items)
            })
        }
        kind => normalize_scalar(kind, value).ok_or_else(|| type_error(kind)),
    }
}

fn normalize_scalar(kind: FieldType, value: &Value) -> Option<Value> {
    match (kind, value) {
        _ if has_type(kind, value) => Some(value.clone()),
        (FieldType::String, Value::Number(_) | Value::Bool(_)) => {
            Some(Value::String(value.to_string()))
        }
        (FieldType::Integer, Value::Number(number)) => to_integer(number).map(Value::Number),
        (FieldType::Number | FieldType::Integer, Value::String(text)) => {
            let number: Number = serde_json::from_str(text.trim().trim_start_matches('+')).ok()?;
            normalize_scalar(kind, &Value::Number(number))
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

/// Converts a number with a decimal point to an integer if it has no fraction.
fn to_integer(number: &Number) -> Option<Number> {
    // 2^53: larger floats do not represent every integer.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_f64() {
        return Some(number.clone());
    }
    let value = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() <= MAX_EXACT)?;
    Some(Number::from(value as i64))
}

/// Returns the option that equals the value, or the only one that differs just in case.
fn matching_option<'o>(options: &'o [Value], value: &Value) -> Option<&'o Value> {
    if let Some(option) = options.iter().find(|option| is_equal(option, value)) {
        return Some(option);
    }
    let fold_case = |value: &Value| match value {
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    let folded = fold_case(value);
    let mut similar = options.iter().filter(|option| fold_case(option) == folded);
    similar.next().filter(|_| similar.next().is_none())
}

/// Returns whether two values are equal; 1 equals 1.0.
pub(crate) fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => one == other,
    }
}

/// Formats a value for an error message and shortens it.
fn format_value(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
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

    fn validate(field: Field, value: Value) -> Result<Value, String> {
        let given = json!({ "f": value }).as_object().cloned().unwrap_or_default();
        validate_answer(&[field], &given).map(|mut values| values.remove(0))
    }

    #[test]
    fn only_notation_is_corrected() {
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
            assert_eq!(validate(field(kind), value.clone()).ok(), expected, "{kind} {value}");
        }
    }

    #[test]
    fn options_bounds_and_defaults_are_applied() {
        let options = Some(vec![json!("Good"), json!("bad")]);
        let label = Field { options, ..field(FieldType::String) };
        assert_eq!(validate(label.clone(), json!(" good ")), Ok(json!("Good")));
        let error = validate(label.clone(), json!("fine")).unwrap_err();
        assert_eq!(error, "`f` is \"fine\", not one of \"Good\", \"bad\"");
        let ambiguous = Field { options: Some(vec![json!("a"), json!("A")]), ..label.clone() };
        assert_eq!(validate(ambiguous.clone(), json!("A")), Ok(json!("A")));
        assert!(validate(ambiguous, json!(" a")).is_err(), "ambiguous");
        let numbers =
            Field { options: Some(vec![json!(1), json!(2)]), ..field(FieldType::Integer) };
        assert_eq!(validate(numbers, json!("2")), Ok(json!(2)));

        let bounded = |kind| Field { min: Some(2.0), max: Some(3.0), ..field(kind) };
        let error = |kind, value| validate(bounded(kind), value).unwrap_err();
        assert_eq!(error(FieldType::Number, json!(3.5)), "`f` is 3.5, and must be at most 3");
        assert_eq!(
            error(FieldType::String, json!("é")),
            "`f` is 1 characters long, and must be at least 2"
        );
        assert_eq!(
            error(FieldType::Array, json!(["a", "b", "c", "d"])),
            "`f` is 4 values long, and must be at most 3"
        );
        assert_eq!(validate(bounded(FieldType::String), json!("éé")), Ok(json!("éé")));

        let missing = validate_answer(std::slice::from_ref(&label), &Map::new()).unwrap_err();
        assert_eq!(missing, "`f` is missing");
        let optional = Field { required: false, ..label.clone() };
        assert_eq!(validate_answer(&[optional], &Map::new()), Ok(vec![Value::Null]));
        let with_default = Field { default: Some(json!("bad")), ..label };
        assert_eq!(validate(with_default, Value::Null), Ok(json!("bad")));
    }
}
