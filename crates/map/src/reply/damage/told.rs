//! What stands in a text in so many words: strict readers of the three forms, which put up with
//! nothing. They know only what [`super::write`] can have written.

use super::write::{DECOY, PROSE};
use crate::row::Fields;
use crate::task::{Format, Task};
use crate::validate;
use serde_json::{Map, Value, json};

/// Whether a well-formed item with that id and that answer stands somewhere in a text.
pub(super) fn in_so_many_words(text: &str, task: &Task, id: &str, answer: &[Value]) -> bool {
    let escaped = with_good_escapes(text);
    // Line ends within texts are put up with, and in YAML a backslash means more than in JSON.
    let same =
        [("\\n", " "), ("\\u0007", "a"), ("\\u001b", "e"), ("\\u000b", "v"), ("\\u0000", "0")];
    let plain = |answer: &[Value]| {
        let text = Value::from(answer).to_string();
        same.into_iter().fold(text, |text, (one, other)| text.replace(one, other))
    };
    let is_it = |given: Map<String, Value>| {
        let told = validate::answer(&task.output, &given);
        told.is_ok_and(|told| plain(&told) == plain(answer))
    };
    let starts = |text: &str, format: Format| {
        let starts = text.char_indices().filter(|(_, c)| ['{', '<', '-'].contains(c));
        starts.map(|(at, _)| at).filter(|at| !is_within(text, *at, id)).any(|at| {
            let read = match format {
                Format::Json => json_item(text, at, id),
                Format::Xml => xml_item(&text[at..], id),
                Format::Yaml => yaml_item(text, at, id),
            };
            read.is_some_and(is_it)
        })
    };
    starts(&escaped, Format::Json)
        || starts(&without_last_commas(&escaped).replace('\n', " "), Format::Json)
        || starts(text, Format::Xml)
        || starts(&escaped, Format::Yaml)
        || starts(text, Format::Yaml)
}

/// JSON without commas before closing brackets, which mean nothing.
fn without_last_commas(text: &str) -> String {
    let parts: Vec<&str> = text.split(',').collect();
    let mut joined = String::new();
    for (place, part) in parts.iter().enumerate() {
        let is_last = part.trim_start().starts_with(['}', ']']);
        joined.push_str(if place == 0 || is_last { "" } else { "," });
        joined.push_str(part);
    }
    joined
}

/// Whether an object stands here that was written within an answer. It is no item, however well
/// formed; unless nothing is left of what it was within, or it begins a list that is called anything
/// else than the field in which it was.
fn is_within(text: &str, at: usize, id: &str) -> bool {
    let before = text[..at].rsplit_once("</think>").map_or(&text[..at], |(_, behind)| behind);
    let prose = PROSE.iter().find_map(|prose| before.strip_prefix(prose));
    let before = prose.unwrap_or(before);
    let before = before.trim_matches(['`', '[', '\n', ' ']);
    let decoy = format!("{{\"id\":\"{id}\",\"x\":\"{DECOY}");
    let begins_list = text[..at].ends_with("\": [") && !text[..at].ends_with("\"list\": [");
    text[at..].starts_with(&decoy) && !before.is_empty() && !begins_list
}

/// JSON with a backslash only before what may follow one: models put it before anything.
fn with_good_escapes(text: &str) -> String {
    let mut good = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        good.push_str(before);
        let Some(first) = after.chars().next() else { break };
        let hex = after.get(1..5).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match first {
            'u' if hex.is_none() => good.push_str("\\ufffd"),
            first if "\"\\/bfnrtu".contains(first) => good.extend(['\\', first]),
            first => good.push(first),
        }
        rest = &after[first.len_utf8()..];
    }
    good + rest
}

fn json_item(text: &str, at: usize, id: &str) -> Option<Map<String, Value>> {
    let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Fields>();
    let Fields(fields) = values.next()?.ok()?;
    let value = |raw: Box<serde_json::value::RawValue>| serde_json::from_str(raw.get()).ok();
    let fields: Option<Map<String, Value>> =
        fields.into_iter().map(|(name, raw)| Some((name, value(raw)?))).collect();
    let fields = fields?;
    let before = text[..at].trim_end().strip_suffix(':').map(str::trim_end);
    let is_under_it = before.is_some_and(|before| before.ends_with(&format!("\"{id}\"")));
    (has_id(&fields, id) || is_under_it).then_some(fields)
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
                    values.push(text_of(value)?);
                    body = after;
                }
                Value::Array(values)
            }
            None => text_of(body)?,
        };
        if fields.insert(name.to_owned(), value).is_some() {
            return None;
        }
    }
    (by_attribute.is_some() || has_id(&fields, id)).then_some(fields)
}

/// Blanks around an id mean nothing.
fn has_id(fields: &Map<String, Value>, id: &str) -> bool {
    fields.get("id").and_then(Value::as_str).is_some_and(|own| own.trim() == id)
}

/// A text; what stands behind a bracket in it cannot begin a tag, but for tags of no meaning.
fn text_of(body: &str) -> Option<Value> {
    let meant = ["item", "id", "x", "n", "y", "o", "list", "tags", "value", "batch"];
    let mut begun = Vec::new();
    for tag in body.split('<').skip(1) {
        if tag.starts_with(|c: char| c.is_ascii_digit() || " =".contains(c)) {
            continue;
        }
        let (name, _) = tag.split_once('>')?;
        let bare = name.strip_prefix('/').unwrap_or(name);
        let is_name = bare.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let has_begun = begun.contains(&bare) || bare == name;
        if !is_name || bare.is_empty() || !has_begun || meant.contains(&bare) {
            return None;
        }
        begun.push(bare);
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

/// A list between brackets of texts without quotes.
fn plain_list(value: &str) -> Option<Value> {
    let values = value.strip_prefix('[')?.strip_suffix(']')?.split(", ");
    let is_word = |value: &&str| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    values.map(|value| Some(value).filter(is_word).map(|value| json!(value))).collect()
}

/// Whether YAML takes it for a text without quotes.
fn is_plain(value: &str) -> bool {
    let is_cut = value.contains(": ") || value.contains(" #") || value.ends_with(':');
    let indicators = "-?:,[]{}#&*!|>'\"%@`";
    !value.is_empty() && !value.starts_with(|first| indicators.contains(first)) && !is_cut
}
