//! Values of elements: strings, arrays and objects.

use super::element::Element;
use super::escape::element_text;
use super::tag::leading_name;
use crate::task::{Field, FieldType};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Parses the values of elements. Scalars stay strings; validation converts them to the types of the task.
pub(super) fn parse_fields(
    elements: &[Element<'_>],
    fields: &[Field],
) -> Result<Map<String, Value>, String> {
    let mut values = Map::new();
    let fragmented = fragmented_names(elements);
    for Element { name, body } in elements {
        let field = fields.iter().find(|field| field.name == *name);
        let value = match field.map(|field| field.kind) {
            Some(FieldType::Array) => parse_array(body),
            Some(FieldType::Object) => parse_object(body),
            _ => Some(Value::String(element_text(body))),
        };
        let value = value.ok_or_else(|| format!("`{name}` cannot be read"))?;
        let value =
            if field.is_some_and(|field| is_absent(field, body)) { Value::Null } else { value };
        match (values.get_mut(*name), value) {
            (None, value) => {
                values.insert((*name).to_owned(), value);
            }
            // An array may be written as one element per value, but not in fragments.
            (Some(Value::Array(items)), Value::Array(more)) if !fragmented.contains(name) => {
                items.extend(more);
            }
            (Some(_), _) => return Err(format!("`{name}` comes twice")),
        }
    }
    Ok(values)
}

/// Returns the names of elements of which at least one is not a single value.
fn fragmented_names<'t>(elements: &[Element<'t>]) -> HashSet<&'t str> {
    let is_single = |body: &str| !body.contains(['<', '[']) && !body.trim().is_empty();
    let fragments = elements.iter().filter(|element| !is_single(element.body));
    fragments.map(|element| element.name).collect()
}

/// Returns whether an empty element means that the value is absent. Only strings and arrays can be empty.
fn is_absent(field: &Field, body: &str) -> bool {
    let can_be_empty = match (&field.options, field.kind) {
        (Some(options), _) => options.iter().any(|option| option == ""),
        (None, kind) => matches!(kind, FieldType::String | FieldType::Array),
    };
    !can_be_empty && body.trim().is_empty()
}

/// Parses an array: `<value>a</value><value>b</value>`, JSON, or one plain value.
fn parse_array(body: &str) -> Option<Value> {
    if let Ok(items @ Value::Array(_)) = serde_json::from_str(&element_text(body)) {
        return Some(items);
    }
    let items = match flat_elements(body) {
        Some(parts) if parts.iter().all(|part| part.name == parts[0].name) => {
            parts.iter().map(|part| Value::String(element_text(part.body))).collect()
        }
        Some(_) => return None,
        None if body.trim().is_empty() => Vec::new(),
        None if has_tag(body) => return None,
        None => vec![Value::String(element_text(body))],
    };
    Some(Value::Array(items))
}

/// Parses an object: one element per field, or JSON.
fn parse_object(body: &str) -> Option<Value> {
    let Some(parts) = flat_elements(body) else { return Some(Value::String(element_text(body))) };
    let mut fields = Map::new();
    for part in parts {
        if fields.insert(part.name.to_owned(), Value::String(element_text(part.body))).is_some() {
            return None;
        }
    }
    Some(fields.into())
}

/// Splits a text into elements without inner elements; `None` if there is anything else.
pub(super) fn flat_elements(body: &str) -> Option<Vec<Element<'_>>> {
    let mut found = Vec::new();
    let mut rest = body.trim();
    while !rest.is_empty() {
        let tag = rest.strip_prefix('<')?;
        let name = Some(leading_name(tag)).filter(|name| !name.is_empty())?;
        let inner = tag[name.len()..].strip_prefix('>')?;
        let (body, after) = inner.split_once(&format!("</{name}>"))?;
        if has_tag(body) {
            return None;
        }
        found.push(Element { name, body });
        rest = after.trim_start();
    }
    Some(found).filter(|found| !found.is_empty())
}

/// Returns whether a text may contain a tag, complete or not.
fn has_tag(body: &str) -> bool {
    let is_tag = |tag: &str| tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    body.split('<').skip(1).any(is_tag)
}
