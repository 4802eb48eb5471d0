//! What elements mean: texts, lists and objects.

use super::element::Element;
use super::escape::text;
use super::tag::name_of;
use crate::task::{Field, FieldType};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The values of elements. What types texts have is for the task to say.
pub(super) fn fields(
    found: &[Element<'_>],
    fields: &[Field],
) -> Result<Map<String, Value>, String> {
    let mut values = Map::new();
    let in_pieces = in_pieces(found);
    for Element { name, body } in found {
        let field = fields.iter().find(|field| field.name == *name);
        let value = match field.map(|field| field.kind) {
            Some(FieldType::Array) => list(body),
            Some(FieldType::Object) => object(body),
            _ => Some(Value::String(text(body))),
        };
        let value = value.ok_or_else(|| format!("`{name}` cannot be read"))?;
        let value =
            if field.is_some_and(|field| is_absent(field, body)) { Value::Null } else { value };
        match (values.get_mut(*name), value) {
            (None, value) => {
                values.insert((*name).to_owned(), value);
            }
            // A list may be written as one element per value, but not in pieces.
            (Some(Value::Array(items)), Value::Array(more)) if !in_pieces.contains(name) => {
                items.extend(more);
            }
            (Some(_), _) => return Err(format!("`{name}` comes twice")),
        }
    }
    Ok(values)
}

/// Names of elements of which one or more are not a single value.
fn in_pieces<'t>(found: &[Element<'t>]) -> HashSet<&'t str> {
    let is_single = |body: &str| !body.contains(['<', '[']) && !body.trim().is_empty();
    let pieces = found.iter().filter(|element| !is_single(element.body));
    pieces.map(|element| element.name).collect()
}

/// An empty element is an empty text or an empty list; of any other kind there is nothing empty.
fn is_absent(field: &Field, body: &str) -> bool {
    let can_be_empty = match (&field.options, field.kind) {
        (Some(options), _) => options.iter().any(|option| option == ""),
        (None, kind) => matches!(kind, FieldType::String | FieldType::Array),
    };
    !can_be_empty && body.trim().is_empty()
}

/// `<value>a</value><value>b</value>`, JSON, or one plain value.
fn list(body: &str) -> Option<Value> {
    if let Ok(items @ Value::Array(_)) = serde_json::from_str(&text(body)) {
        return Some(items);
    }
    let items = match parts(body) {
        Some(parts) if parts.iter().all(|part| part.name == parts[0].name) => {
            parts.iter().map(|part| Value::String(text(part.body))).collect()
        }
        Some(_) => return None,
        None if body.trim().is_empty() => Vec::new(),
        None if has_tag(body) => return None,
        None => vec![Value::String(text(body))],
    };
    Some(Value::Array(items))
}

/// An element per field, or JSON.
fn object(body: &str) -> Option<Value> {
    let Some(parts) = parts(body) else { return Some(Value::String(text(body))) };
    let mut fields = Map::new();
    for part in parts {
        if fields.insert(part.name.to_owned(), Value::String(text(part.body))).is_some() {
            return None;
        }
    }
    Some(fields.into())
}

/// Elements that follow each other, without others in them; nothing where there is anything else.
pub(super) fn parts(body: &str) -> Option<Vec<Element<'_>>> {
    let mut found = Vec::new();
    let mut rest = body.trim();
    while !rest.is_empty() {
        let tag = rest.strip_prefix('<')?;
        let name = Some(name_of(tag)).filter(|name| !name.is_empty())?;
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

/// Whether there is what could be a tag in it, whole or not.
fn has_tag(body: &str) -> bool {
    let is_tag = |tag: &str| tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    body.split('<').skip(1).any(is_tag)
}
