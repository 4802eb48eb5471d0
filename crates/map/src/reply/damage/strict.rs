//! Strict readers of the three formats. They accept only what [`super::generate`] can have written.

use super::generate::{DECOY, PROSE};
use crate::row::RowFields;
use crate::task::{ReplyFormat, Task};
use crate::validate;
use serde_json::{Map, Value, json};

/// Returns whether a text contains a well-formed item with this id and answer.
pub(super) fn contains_item(text: &str, task: &Task, id: &str, answer: &[Value]) -> bool {
    let escaped = with_valid_escapes(text);
    // The readers accept line ends within strings, and YAML has more escapes than JSON.
    let equivalents =
        [("\\n", " "), ("\\u0007", "a"), ("\\u001b", "e"), ("\\u000b", "v"), ("\\u0000", "0")];
    let plain = |answer: &[Value]| {
        let text = Value::from(answer).to_string();
        equivalents.into_iter().fold(text, |text, (one, other)| text.replace(one, other))
    };
    let is_answer = |given: Map<String, Value>| {
        let values = validate::validate_answer(&task.output, &given);
        values.is_ok_and(|values| plain(&values) == plain(answer))
    };
    let contains = |text: &str, format: ReplyFormat| {
        let starts = text.char_indices().filter(|(_, c)| ['{', '<', '-'].contains(c));
        starts.map(|(at, _)| at).filter(|at| !is_decoy(text, *at, id)).any(|at| {
            let read = match format {
                ReplyFormat::Json => json_item(text, at, id),
                ReplyFormat::Xml => xml_item(&text[at..], id),
                ReplyFormat::Yaml => yaml_item(text, at, id),
            };
            read.is_some_and(is_answer)
        })
    };
    contains(&escaped, ReplyFormat::Json)
        || contains(&without_trailing_commas(&escaped).replace('\n', " "), ReplyFormat::Json)
        || contains(text, ReplyFormat::Xml)
        || contains(&escaped, ReplyFormat::Yaml)
        || contains(text, ReplyFormat::Yaml)
}

/// Removes commas before closing brackets.
fn without_trailing_commas(text: &str) -> String {
    let parts: Vec<&str> = text.split(',').collect();
    let mut joined = String::new();
    for (index, part) in parts.iter().enumerate() {
        let is_trailing = part.trim_start().starts_with(['}', ']']);
        joined.push_str(if index == 0 || is_trailing { "" } else { "," });
        joined.push_str(part);
    }
    joined
}

/// Returns whether the object here was generated within an answer. It is not an item then, unless nothing is
/// left of the enclosing answer, or it starts a list with a name other than that of its field.
fn is_decoy(text: &str, at: usize, id: &str) -> bool {
    let before = text[..at].rsplit_once("</think>").map_or(&text[..at], |(_, after)| after);
    let prose = PROSE.iter().find_map(|prose| before.strip_prefix(prose));
    let before = prose.unwrap_or(before);
    let before = before.trim_matches(['`', '[', '\n', ' ']);
    let decoy = format!("{{\"id\":\"{id}\",\"x\":\"{DECOY}");
    let starts_list = text[..at].ends_with("\": [") && !text[..at].ends_with("\"list\": [");
    text[at..].starts_with(&decoy) && !before.is_empty() && !starts_list
}

/// Removes backslashes that are no valid escapes in JSON. Models put them before any character.
fn with_valid_escapes(text: &str) -> String {
    let mut valid = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        valid.push_str(before);
        let Some(first) = after.chars().next() else { break };
        let hex = after.get(1..5).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match first {
            'u' if hex.is_none() => valid.push_str("\\ufffd"),
            first if "\"\\/bfnrtu".contains(first) => valid.extend(['\\', first]),
            first => valid.push(first),
        }
        rest = &after[first.len_utf8()..];
    }
    valid + rest
}

fn json_item(text: &str, at: usize, id: &str) -> Option<Map<String, Value>> {
    let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<RowFields>();
    let RowFields(fields) = values.next()?.ok()?;
    let value = |raw: Box<serde_json::value::RawValue>| serde_json::from_str(raw.get()).ok();
    let fields: Option<Map<String, Value>> =
        fields.into_iter().map(|(name, raw)| Some((name, value(raw)?))).collect();
    let fields = fields?;
    let before = text[..at].trim_end().strip_suffix(':').map(str::trim_end);
    let has_id_key = before.is_some_and(|before| before.ends_with(&format!("\"{id}\"")));
    (has_id(&fields, id) || has_id_key).then_some(fields)
}

fn xml_item(text: &str, id: &str) -> Option<Map<String, Value>> {
    let by_attribute = text.strip_prefix(&format!("<item id=\"{id}\">"));
    let mut rest = by_attribute.or_else(|| text.strip_prefix("<item>"))?.trim_start();
    let mut fields = Map::new();
    while !rest.starts_with("</item>") {
        let (name, after) = rest.strip_prefix('<')?.split_once('>')?;
        let (body, after) = after.split_once(&format!("</{name}>"))?;
        rest = after.trim_start();
        let value = match body.strip_prefix("<![CDATA[") {
            Some(data) => json!(data.strip_suffix("]]>")?),
            None if name == "tags" => {
                let mut values = Vec::new();
                let mut body = body;
                while !body.is_empty() {
                    let (value, after) = body.strip_prefix("<value>")?.split_once("</value>")?;
                    values.push(parse_text(value)?);
                    body = after;
                }
                Value::Array(values)
            }
            None => parse_text(body)?,
        };
        if fields.insert(name.to_owned(), value).is_some() {
            return None;
        }
    }
    (by_attribute.is_some() || has_id(&fields, id)).then_some(fields)
}

/// Returns whether the fields have this id. White space around it is ignored.
fn has_id(fields: &Map<String, Value>, id: &str) -> bool {
    fields.get("id").and_then(Value::as_str).is_some_and(|found| found.trim() == id)
}

/// Parses a text. It may contain brackets that start no tag, and tags without a meaning.
fn parse_text(body: &str) -> Option<Value> {
    let reserved = ["item", "id", "x", "n", "y", "o", "list", "tags", "value", "batch"];
    let mut started = Vec::new();
    for tag in body.split('<').skip(1) {
        if tag.starts_with(|c: char| c.is_ascii_digit() || " =".contains(c)) {
            continue;
        }
        let (name, _) = tag.split_once('>')?;
        let bare = name.strip_prefix('/').unwrap_or(name);
        let is_name = bare.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_started = started.contains(&bare) || bare == name;
        if !is_name || bare.is_empty() || !is_started || reserved.contains(&bare) {
            return None;
        }
        started.push(bare);
    }
    Some(json!(body.replace("&lt;", "<").replace("&amp;", "&")))
}

fn yaml_item(text: &str, at: usize, id: &str) -> Option<Map<String, Value>> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let indent = &text[start..at];
    if !indent.bytes().all(|byte| byte == b' ') {
        return None;
    }
    let deeper = format!("{indent}  ");
    let mut lines = text[at..].lines().peekable();
    let mut fields = Map::new();
    let mut line = lines.next()?.strip_prefix("- ")?;
    loop {
        let (name, value) =
            line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "null")))?;
        let value = match value.trim() {
            kind @ ("|-" | "|") => {
                let mut blank = String::new();
                while lines.next_if(|line| line.trim().is_empty()).is_some() {
                    blank.push('\n');
                }
                let first = lines.peek()?;
                let inner = first[..first.len() - first.trim_start_matches(' ').len()].to_owned();
                if inner.len() <= deeper.len() {
                    return None;
                }
                let mut body = Vec::new();
                while let Some(line) = lines.next_if(|line| line.starts_with(&inner)) {
                    body.push(&line[inner.len()..]);
                }
                let end = if kind == "|" { "\n" } else { "" };
                json!(blank + &body.join("\n") + end)
            }
            "" => Value::Null,
            value => match serde_json::from_str(value) {
                Ok(value) => value,
                Err(_) if is_plain(value) => json!(value),
                Err(_) => plain_list(value)?,
            },
        };
        if fields.insert(name.to_owned(), value).is_some() {
            return None;
        }
        match lines.find(|line| !line.trim().is_empty()) {
            Some(next) if next.starts_with(&deeper) => line = &next[deeper.len()..],
            _ => break,
        }
    }
    (has_id(&fields, id)).then_some(fields)
}

/// Parses an inline list of unquoted strings.
fn plain_list(value: &str) -> Option<Value> {
    let values = value.strip_prefix('[')?.strip_suffix(']')?.split(", ");
    let is_word = |value: &&str| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    values.map(|value| Some(value).filter(is_word).map(|value| json!(value))).collect()
}

/// Returns whether YAML parses a value as an unquoted string.
fn is_plain(value: &str) -> bool {
    let is_cut = value.contains(": ") || value.contains(" #") || value.ends_with(':');
    let indicators = "-?:,[]{}#&*!|>'\"%@`";
    !value.is_empty() && !value.starts_with(|first| indicators.contains(first)) && !is_cut
}
