//! Replies as they were before they were damaged.

use super::Dice;
use crate::task::Format;
use serde_json::{Map, Value, json};

/// Stands in objects within answers, which are nobody's answers.
pub(super) const DECOY: &str = "decoy-for-nobody";

/// Stand before some replies: on lines of their own, or not.
pub(super) const PROSE: [&str; 3] = ["Here {you} [are]:", "Here is the reply:", "<answer>"];

/// An item and its answer.
pub(super) struct Item {
    pub(super) id: String,
    pub(super) fields: Map<String, Value>,
    place: usize,
}

impl Item {
    /// What every text of its answer has in it.
    pub(super) fn mark(&self) -> String {
        format!("m{}", self.id)
    }

    /// A number that only it has.
    pub(super) fn number(&self) -> u64 {
        7_310_057 * (self.place as u64 + 1)
    }

    fn text(&self, dice: &mut Dice) -> String {
        let mark = self.mark();
        match dice.below(12) {
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

/// So many items with answers.
pub(super) fn items(kind: usize, count: usize, dice: &mut Dice) -> Vec<Item> {
    let letters = b"abcdefghjkmnpqrstuvwxyz23456789";
    let mut ids: Vec<String> = Vec::new();
    while ids.len() < count {
        let mut id = char::from(letters[dice.below(23)]).to_string();
        id.extend((0..5).map(|_| char::from(letters[dice.below(31)])));
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let mut items = Vec::new();
    for place in 0..count {
        let mut item = Item { id: ids[place].clone(), fields: Map::new(), place };
        let mut fields = vec![("x", json!(item.text(dice)))];
        match kind {
            0 => fields.extend([("n", json!(item.number())), ("y", json!(item.text(dice)))]),
            1 => {
                let tags: Vec<String> =
                    (0..dice.below(3)).map(|n| format!("{}t{n}", item.mark())).collect();
                fields.extend([
                    ("n", json!(item.number())),
                    ("tags", json!(tags)),
                    ("y", json!(item.text(dice))),
                ]);
                fields.retain(|_| !dice.one_in(3));
            }
            _ => {
                let other = &ids[dice.below(count)];
                let decoy = json!({ "id": other, "x": format!("{DECOY} {}", item.mark()) });
                fields.extend([
                    ("o", if dice.one_in(2) { decoy.clone() } else { json!({ "k": item.mark() }) }),
                    ("list", json!([decoy, { "k": item.mark() }])),
                    ("y", json!(item.text(dice))),
                ]);
                fields.retain(|(name, _)| *name == "x" || !dice.one_in(3));
            }
        }
        item.fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        items.push(item);
    }
    items
}

pub(super) fn reply(format: Format, items: &[Item], dice: &mut Dice) -> String {
    let text = match format {
        Format::Json => json(items, dice),
        Format::Xml => xml(items, dice),
        Format::Yaml => yaml(items, dice),
    };
    let has_lines = format == Format::Yaml;
    match dice.below(8) {
        0 | 1 => format!("```\n{text}\n```"),
        2 => format!("{}\n\n{text}\n\nAnything <else>?", PROSE[0]),
        3 if !has_lines => format!("{} {text}", PROSE[1]),
        4 if !has_lines => format!("{}{text}</answer>", PROSE[2]),
        5 => format!("<think>\n{}</think>\n\n{text}", thought(items, dice)),
        _ => text,
    }
}

/// Items as they were asked about, and drafts of answers.
fn thought(items: &[Item], dice: &mut Dice) -> String {
    let mut text = String::new();
    for item in items.iter().filter(|_| dice.one_in(2)) {
        let data = json!({ "id": item.id, "data": { "text": item.mark(), "id": item.number() } });
        let draft = json!({ "id": item.id, "x": format!("{DECOY} {}", item.mark()) });
        text.push_str(&format!("I see {data}, so perhaps\n{draft}\n"));
    }
    text
}

/// An item's fields in order, with its id before or behind them.
fn pairs(item: &Item, is_last: bool) -> Vec<(String, Value)> {
    let mut pairs: Vec<(String, Value)> =
        item.fields.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let place = if is_last { pairs.len() } else { 0 };
    pairs.insert(place, ("id".to_owned(), json!(item.id)));
    pairs
}

fn json(items: &[Item], dice: &mut Dice) -> String {
    let is_last = dice.one_in(6);
    let style = dice.below(5);
    let end = if dice.one_in(2) { "\n  " } else { "" };
    let object = |pairs: Vec<(String, Value)>| {
        let pairs: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{end}\"{name}\": {value}")).collect();
        format!("{{{}}}", pairs.join(","))
    };
    let all: Vec<String> = items.iter().map(|item| object(pairs(item, is_last))).collect();
    match style {
        0 => all.join("\n"),
        1 => format!("[{}]", all.join(", ")),
        2 => {
            let bare = |item: &Item| object(pairs(item, false).split_off(1));
            let entry = |item: &Item| format!("\"{}\": {}", item.id, bare(item));
            format!("{{{}}}", items.iter().map(entry).collect::<Vec<_>>().join(","))
        }
        _ => format!("{{\"items\":[{}]}}", all.join(",\n")),
    }
}

fn xml(items: &[Item], dice: &mut Dice) -> String {
    let has_inner_id = dice.one_in(5);
    let end = if dice.one_in(2) { "\n  " } else { "" };
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
                        values.iter().map(|value| format!("<value>{}</value>", plain(value)));
                    text.extend(values);
                }
                Value::String(plain) if plain.contains("<b>") => {
                    text.push_str(&format!("<![CDATA[{plain}]]>"));
                }
                value => text.push_str(&plain(value)),
            }
            text.push_str(&format!("</{name}>"));
        }
        text.push_str("</item>\n");
    }
    text + "</reply>"
}

fn plain(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn yaml(items: &[Item], dice: &mut Dice) -> String {
    let is_last = dice.one_in(6);
    let indent = if dice.one_in(3) { "" } else { "  " };
    let mut text = if indent.is_empty() { String::new() } else { "items:\n".to_owned() };
    for item in items {
        for (place, (name, value)) in pairs(item, is_last).iter().enumerate() {
            let start = if place == 0 { "- " } else { "  " };
            let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let shown = match value {
                Value::String(text) if is_plain(text) && dice.one_in(2) => text.clone(),
                Value::String(text) if !text.starts_with(' ') && dice.one_in(4) => {
                    let lines = text.replace('\n', &format!("\n{indent}    "));
                    format!("|-\n{indent}    {lines}")
                }
                value => value.to_string(),
            };
            text.push_str(&format!("{indent}{start}{name}: {shown}\n"));
        }
    }
    text + "end: true"
}
