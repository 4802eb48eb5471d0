//! Generation of intact replies.

use super::SplitMix;
use crate::task::ReplyFormat;
use serde_json::{Map, Value, json};

/// Mark of objects within answers that look like items.
pub(super) const DECOY: &str = "decoy-not-answer";

/// Prose before some replies, on the same or a separate line.
pub(super) const PROSE: [&str; 3] = ["Here {you} [are]:", "Here is the reply:", "<answer>"];

/// An item with its answer.
pub(super) struct TestItem {
    pub(super) id: String,
    pub(super) fields: Map<String, Value>,
    index: usize,
}

impl TestItem {
    /// Returns the mark that every string of the answer contains.
    pub(super) fn mark(&self) -> String {
        format!("m{}", self.id)
    }

    /// Returns the number that only this item has.
    pub(super) fn number(&self) -> u64 {
        7_310_057 * (self.index as u64 + 1)
    }

    /// Returns a string with the mark, in a random style.
    fn text(&self, rng: &mut SplitMix) -> String {
        let mark = self.mark();
        match rng.below(12) {
            0 => format!("{mark} said \"no\" & left"),
            1 => format!("{mark}, {{é}} and [all]"),
            2 => format!("a <b>{mark}</b> <i"),
            3 => format!("so: {mark} # 5\" wide"),
            4 => format!("{mark}\n- id: {mark}\n  x: {DECOY}"),
            5 => format!("quoted: <item id=\"zz\"><x>{mark}</x></item>"),
            6 => format!(" {mark} \\ "),
            _ => format!("{mark}z"),
        }
    }
}

/// Generates items with answers.
pub(super) fn items(kind: usize, count: usize, rng: &mut SplitMix) -> Vec<TestItem> {
    let letters = b"abcdefghjkmnpqrstuvwxyz23456789";
    let mut ids: Vec<String> = Vec::new();
    while ids.len() < count {
        let mut id = char::from(letters[rng.below(23)]).to_string();
        id.extend((0..5).map(|_| char::from(letters[rng.below(31)])));
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let mut items = Vec::new();
    for index in 0..count {
        let mut item = TestItem { id: ids[index].clone(), fields: Map::new(), index };
        let mut fields = vec![("x", json!(item.text(rng)))];
        match kind {
            0 => fields.extend([("n", json!(item.number())), ("y", json!(item.text(rng)))]),
            1 => {
                let tags: Vec<String> =
                    (0..rng.below(3)).map(|n| format!("{}t{n}", item.mark())).collect();
                fields.extend([
                    ("n", json!(item.number())),
                    ("tags", json!(tags)),
                    ("y", json!(item.text(rng))),
                ]);
                fields.retain(|_| !rng.one_in(3));
            }
            _ => {
                let other = &ids[rng.below(count)];
                let decoy = json!({ "id": other, "x": format!("{DECOY} {}", item.mark()) });
                fields.extend([
                    ("o", if rng.one_in(2) { decoy.clone() } else { json!({ "k": item.mark() }) }),
                    ("list", json!([decoy, { "k": item.mark() }])),
                    ("y", json!(item.text(rng))),
                ]);
                fields.retain(|(name, _)| *name == "x" || !rng.one_in(3));
            }
        }
        item.fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        items.push(item);
    }
    items
}

/// Generates a reply, with random wrapping.
pub(super) fn reply(format: ReplyFormat, items: &[TestItem], rng: &mut SplitMix) -> String {
    let text = match format {
        ReplyFormat::Json => json(items, rng),
        ReplyFormat::Xml => xml(items, rng),
        ReplyFormat::Yaml => yaml(items, rng),
    };
    let needs_own_lines = format == ReplyFormat::Yaml;
    match rng.below(8) {
        0 | 1 => format!("```\n{text}\n```"),
        2 => format!("{}\n\n{text}\n\nAnything <else>?", PROSE[0]),
        3 if !needs_own_lines => format!("{} {text}", PROSE[1]),
        4 if !needs_own_lines => format!("{}{text}</answer>", PROSE[2]),
        5 => format!("<think>\n{}</think>\n\n{text}", reasoning(items, rng)),
        _ => text,
    }
}

/// Generates reasoning text with quoted items and drafts of answers.
fn reasoning(items: &[TestItem], rng: &mut SplitMix) -> String {
    let mut text = String::new();
    for item in items.iter().filter(|_| rng.one_in(2)) {
        let data = json!({ "id": item.id, "data": { "text": item.mark(), "id": item.number() } });
        let draft = json!({ "id": item.id, "x": format!("{DECOY} {}", item.mark()) });
        text.push_str(&format!("I see {data}, so perhaps\n{draft}\n"));
    }
    text
}

/// Returns the fields of an item with its id, which is first or last.
fn pairs(item: &TestItem, is_id_last: bool) -> Vec<(String, Value)> {
    let mut pairs: Vec<(String, Value)> =
        item.fields.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let position = if is_id_last { pairs.len() } else { 0 };
    pairs.insert(position, ("id".to_owned(), json!(item.id)));
    pairs
}

fn json(items: &[TestItem], rng: &mut SplitMix) -> String {
    let is_id_last = rng.one_in(6);
    let style = rng.below(5);
    let end = if rng.one_in(2) { "\n  " } else { "" };
    let object = |pairs: Vec<(String, Value)>| {
        let pairs: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{end}\"{name}\": {value}")).collect();
        format!("{{{}}}", pairs.join(","))
    };
    let all: Vec<String> = items.iter().map(|item| object(pairs(item, is_id_last))).collect();
    match style {
        0 => all.join("\n"),
        1 => format!("[{}]", all.join(", ")),
        2 => {
            let bare = |item: &TestItem| object(pairs(item, false).split_off(1));
            let entry = |item: &TestItem| format!("\"{}\": {}", item.id, bare(item));
            format!("{{{}}}", items.iter().map(entry).collect::<Vec<_>>().join(","))
        }
        _ => format!("{{\"items\":[{}]}}", all.join(",\n")),
    }
}

fn xml(items: &[TestItem], rng: &mut SplitMix) -> String {
    let has_inner_id = rng.one_in(5);
    let end = if rng.one_in(2) { "\n  " } else { "" };
    let mut text = "<reply>\n".to_owned();
    for item in items {
        match has_inner_id {
            true => text.push_str(&format!("<item>{end}<id>{}</id>", item.id)),
            false => text.push_str(&format!("<item id=\"{}\">", item.id)),
        }
        for (name, value) in &item.fields {
            text.push_str(&format!("{end}<{name}>"));
            match value {
                Value::Array(values) if name == "tags" => {
                    let values =
                        values.iter().map(|value| format!("<value>{}</value>", escape(value)));
                    text.extend(values);
                }
                Value::String(plain) if plain.contains("<b>") => {
                    text.push_str(&format!("<![CDATA[{plain}]]>"));
                }
                value => text.push_str(&escape(value)),
            }
            text.push_str(&format!("</{name}>"));
        }
        text.push_str("</item>\n");
    }
    text + "</reply>"
}

/// Escapes a value for XML.
fn escape(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn yaml(items: &[TestItem], rng: &mut SplitMix) -> String {
    let is_id_last = rng.one_in(6);
    let indent = if rng.one_in(3) { "" } else { "  " };
    let mut text = if indent.is_empty() { String::new() } else { "items:\n".to_owned() };
    for item in items {
        for (index, (name, value)) in pairs(item, is_id_last).iter().enumerate() {
            let start = if index == 0 { "- " } else { "  " };
            let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let written = match value {
                Value::String(text) if is_plain(text) && rng.one_in(2) => text.clone(),
                Value::String(text) if !text.starts_with(' ') && rng.one_in(4) => {
                    let lines = text.replace('\n', &format!("\n{indent}    "));
                    format!("|-\n{indent}    {lines}")
                }
                value => value.to_string(),
            };
            text.push_str(&format!("{indent}{start}{name}: {written}\n"));
        }
    }
    text + "end: true"
}
