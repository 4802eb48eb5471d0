//! Items in XML: `<item id="…"><field>…</field></item>`, wherever they stand in a text.
//!
//! A reader of our own for this flat shape, because models write XML that no parser accepts: bare
//! `&` and `<` in texts, prose around it, and a reply that is cut. An item counts when its end is
//! there.

use super::{Contents, Said, id_of};
use crate::task::{Field, FieldType, Task};
use serde_json::{Map, Value};

/// Items without an end that are passed over; a text with more of them is not worth the time.
const MOST_BROKEN: usize = 200;

pub(super) fn read(text: &str, task: &Task) -> Contents {
    let mut contents = Contents::default();
    let mut broken = 0;
    let mut rest = text;
    while let Some((attributes, after)) = find_open(rest, "item") {
        let (fields, after) = match attributes.strip_suffix('/') {
            Some(_) => (Ok(Map::new()), after),
            None => match children(after, "item", &task.output) {
                Some(read) => read,
                None => {
                    contents.problem.get_or_insert_with(|| "an <item> has no end".to_owned());
                    broken += 1;
                    if broken >= MOST_BROKEN {
                        break;
                    }
                    rest = after;
                    continue;
                }
            },
        };
        rest = after;
        let mut fields = fields;
        let id = attribute(attributes, "id").map(|id| Value::String(decode(id)));
        let inner = fields.as_mut().ok().and_then(|fields| fields.remove("id"));
        if let Some(id) = id.or(inner).as_ref().and_then(id_of) {
            contents.items.push(Said { id, fields });
        }
    }
    if !task.batch.is_empty()
        && let Some((_, after)) = find_open(text, "batch")
        && let Some((Ok(batch), _)) = children(after, "batch", &task.batch)
    {
        contents.batch = Some(batch);
    }
    contents.problem.get_or_insert_with(|| "there is no <item> in it".to_owned());
    contents
}

/// The next start tag of that name: what stands in it after the name, and what comes behind it.
fn find_open<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let mut rest = text;
    loop {
        let start = rest.find('<')?;
        rest = &rest[start + 1..];
        let Some(after) = rest.strip_prefix(name) else { continue };
        if !after.starts_with(|c: char| c.is_whitespace() || c == '>' || c == '/') {
            continue;
        }
        let end = after.find('>')?;
        return Some((after[..end].trim(), &after[end + 1..]));
    }
}

type Children<'t> = (Result<Map<String, Value>, String>, &'t str);

/// The elements up to the end tag of their parent, and what comes behind it; `None` without one.
fn children<'t>(text: &'t str, parent: &str, fields: &[Field]) -> Option<Children<'t>> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    loop {
        let start = rest.find('<')?;
        let tag = &rest[start + 1..];
        if let Some(after) = tag.strip_prefix('/').and_then(|tag| tag.strip_prefix(parent))
            && let Some(after) = after.trim_start().strip_prefix('>')
        {
            return Some((values(found, fields), after));
        }
        let length = tag.find(|c: char| !is_name(c)).unwrap_or(tag.len());
        let name = &tag[..length];
        // Another item before the end of this one: the end is missing.
        if name == parent {
            return None;
        }
        let is_element = length > 0 && tag[length..].starts_with(|c: char| " \t\r\n/>".contains(c));
        if !is_element {
            rest = tag;
            continue;
        }
        let end = tag.find('>')?;
        if tag[..end].ends_with('/') {
            found.push((name.to_owned(), String::new()));
            rest = &tag[end + 1..];
            continue;
        }
        let body = &tag[end + 1..];
        let close = format!("</{name}>");
        let length = body.find(&close)?;
        found.push((name.to_owned(), body[..length].to_owned()));
        rest = &body[length + close.len()..];
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn values(found: Vec<(String, String)>, fields: &[Field]) -> Result<Map<String, Value>, String> {
    let mut values = Map::new();
    for (name, body) in found {
        let kind = fields.iter().find(|field| field.name == name).map(|field| field.kind);
        let value = match kind {
            Some(FieldType::Array) => list(&body),
            Some(FieldType::Object) => object(&body),
            _ => Value::String(decode(body.trim())),
        };
        match (values.get_mut(&name), value) {
            (None, value) => {
                values.insert(name, value);
            }
            // A list may be written as one element per value.
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(earlier), value) if *earlier == value => {}
            (Some(_), _) => return Err(format!("`{name}` comes twice")),
        }
    }
    Ok(values)
}

/// `<value>a</value><value>b</value>`, JSON, or one plain value.
fn list(body: &str) -> Value {
    let text = decode(body.trim());
    if let Ok(items @ Value::Array(_)) = serde_json::from_str(&text) {
        return items;
    }
    let inner = elements(body);
    match (inner.is_empty(), text.is_empty()) {
        (false, _) => {
            Value::Array(inner.into_iter().map(|(_, text)| Value::String(text)).collect())
        }
        (true, true) => Value::Array(Vec::new()),
        (true, false) => Value::Array(vec![Value::String(text)]),
    }
}

/// An element per field, or JSON.
fn object(body: &str) -> Value {
    let inner = elements(body);
    match inner.is_empty() {
        true => Value::String(decode(body.trim())),
        false => inner
            .into_iter()
            .map(|(name, text)| (name, Value::String(text)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// Names and texts of elements that follow each other; none where there is anything else.
fn elements(body: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = body.trim();
    while let Some(tag) = rest.strip_prefix('<') {
        let length = tag.find(|c: char| !is_name(c)).unwrap_or(tag.len());
        let (name, after) = tag.split_at(length);
        let close = format!("</{name}>");
        let (Some(after), false) = (after.strip_prefix('>'), name.is_empty()) else {
            return Vec::new();
        };
        let Some(length) = after.find(&close) else { return Vec::new() };
        found.push((name.to_owned(), decode(after[..length].trim())));
        rest = after[length + close.len()..].trim_start();
    }
    if rest.is_empty() { found } else { Vec::new() }
}

fn attribute<'t>(attributes: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = attributes;
    loop {
        let at = rest.find(name)?;
        let is_start = at == 0 || rest[..at].ends_with(char::is_whitespace);
        let after = rest[at + name.len()..].trim_start();
        if let (true, Some(after)) = (is_start, after.strip_prefix('=')) {
            let after = after.trim_start();
            let quote = after.chars().next().filter(|c| ['"', '\''].contains(c))?;
            let value = &after[1..];
            return value.find(quote).map(|end| &value[..end]);
        }
        rest = &rest[at + name.len()..];
    }
}

/// A text without its escapes. What is no escape stays as it is.
fn decode(text: &str) -> String {
    if let Some(inner) = text.strip_prefix("<![CDATA[").and_then(|text| text.strip_suffix("]]>")) {
        return inner.to_owned();
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        decoded.push_str(before);
        match after.split_once(';').and_then(|(name, after)| Some((entity(name)?, after))) {
            Some((character, after)) => {
                decoded.push(character);
                rest = after;
            }
            None => {
                decoded.push('&');
                rest = after;
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}
