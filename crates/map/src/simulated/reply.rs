//! Answers about items that share a request: parses item ids and requested fields from the prompt and
//! derives values from the item's data, so that tests can tell which item a value belongs to.
//!
//! A string is the first value of the data; a number is the last number in it. Without a number within
//! the bounds, the number follows from a hash of the data, as do options and booleans: answers vary as
//! those of real models do, and equal items have equal answers.

use super::fault::{self, ReplyFault};
use super::item::{self, PromptItem};
use crate::prompt::{BATCH_HEADING, ITEMS_HEADING};
use crate::task::ReplyFormat;
use rand::rngs::ChaCha8Rng;
use serde_json::{Map, Value, json};

/// A field requested by the prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PromptField {
    pub(super) name: String,
    kind: String,
    options: Vec<Value>,
    minimum: Option<f64>,
    maximum: Option<f64>,
}

/// Answer about one item: its id and the values of the fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ItemAnswer {
    pub(super) id: String,
    pub(super) values: Vec<Value>,
}

/// Generates the reply to a prompt.
pub(super) fn reply(prompt: &str, fault: ReplyFault, rng: &mut ChaCha8Rng) -> String {
    let Some((head, items)) = prompt.split_once(ITEMS_HEADING) else {
        return "There are no items.".to_owned();
    };
    let (about_items, about_all) = head.split_once(BATCH_HEADING).unwrap_or((head, ""));
    let (fields, batch_fields) = (parse_fields(about_items), parse_fields(about_all));
    let format = match head {
        _ if head.contains("Reply in XML") => ReplyFormat::Xml,
        _ if head.contains("Reply in YAML") => ReplyFormat::Yaml,
        _ => ReplyFormat::Json,
    };
    let mut answers = Vec::new();
    for line in items.lines() {
        let Some(item) = item::parse(line) else { continue };
        let is_stubborn = fault == ReplyFault::Stubborn;
        let value = |field| if is_stubborn { wrong_value(field) } else { value(field, &item) };
        let values = fields.iter().map(value).collect();
        answers.push(ItemAnswer { id: item.id.clone(), values });
    }
    let count = answers.len();
    let all = PromptItem::from_text(&format!("{count} items, {count}"));
    let batch: Vec<(String, Value)> =
        batch_fields.iter().map(|field| (field.name.clone(), value(field, &all))).collect();
    fault::write(fault, format, answers, &ReplyLayout { fields: &fields, batch: &batch }, rng)
}

/// Parts of a reply other than its answers.
pub(super) struct ReplyLayout<'a> {
    fields: &'a [PromptField],
    /// Values requested once per pack.
    batch: &'a [(String, Value)],
}

/// Parses lines such as ``- `score`: integer, required, at least 1, at most 5``.
fn parse_fields(text: &str) -> Vec<PromptField> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`: "));
    lines
        .map(|(name, about)| {
            let after = |mark: &str| about.split_once(mark).map(|(_, after)| after);
            let number = |mark: &str| {
                let text = after(mark)?;
                let end = text.find(|c: char| !"0123456789.-".contains(c)).unwrap_or(text.len());
                text[..end].trim_end_matches('.').parse().ok()
            };
            let options = after(", one of ").map(parse_options).unwrap_or_default();
            let kind = about.split([',', ' ', '.']).next().unwrap_or_default();
            PromptField {
                name: name.to_owned(),
                kind: kind.to_owned(),
                options,
                minimum: number(", at least "),
                maximum: number(", at most "),
            }
        })
        .collect()
}

/// Parses JSON values separated by bars, up to the first text that is none.
fn parse_options(text: &str) -> Vec<Value> {
    let mut options = Vec::new();
    let mut rest = text;
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { return options };
        options.push(value);
        match rest[values.byte_offset()..].strip_prefix(" | ") {
            Some(after) => rest = after,
            None => return options,
        }
    }
}

fn value(field: &PromptField, item: &PromptItem) -> Value {
    let text = &item.text;
    if !field.options.is_empty() {
        return field.options[item.draw(&field.name, field.options.len() as u64) as usize].clone();
    }
    let length = field.maximum.map_or(usize::MAX, |maximum| maximum as usize);
    match field.kind.as_str() {
        "integer" | "number" => json!(number(field, item)),
        "boolean" => json!(item.draw(&field.name, 2) == 0),
        "array" => json!([text]),
        "object" => json!({ "of": text }),
        _ => json!(text.chars().take(length).collect::<String>()),
    }
}

fn number(field: &PromptField, item: &PromptItem) -> i64 {
    let minimum = field.minimum.map(|minimum| minimum.ceil() as i64);
    let maximum = field.maximum.map(|maximum| maximum.floor() as i64);
    let digits = item.text.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
    let own = digits.and_then(|digits| digits.parse::<i64>().ok());
    let number = own.unwrap_or(item.text.chars().count() as i64);
    let is_within = minimum.is_none_or(|minimum| minimum <= number)
        && maximum.is_none_or(|maximum| number <= maximum);
    match (own, minimum, maximum) {
        (Some(own), ..) if is_within => own,
        (_, Some(minimum), Some(maximum)) if minimum <= maximum => {
            let width = maximum.abs_diff(minimum).saturating_add(1);
            minimum.saturating_add_unsigned(item.draw(&field.name, width))
        }
        _ => {
            let number = maximum.map_or(number, |maximum| number.min(maximum));
            minimum.map_or(number, |minimum| number.max(minimum))
        }
    }
}

/// Returns a value of a type that the field does not permit.
fn wrong_value(field: &PromptField) -> Value {
    match field.kind.as_str() {
        "object" => json!("nothing"),
        _ => json!({ "no": field.name }),
    }
}

impl ReplyLayout<'_> {
    /// Writes the whole reply.
    pub(super) fn write(&self, format: ReplyFormat, answers: &[ItemAnswer]) -> String {
        match format {
            ReplyFormat::Json => {
                let items: Vec<String> = answers.iter().map(|answer| self.json(answer)).collect();
                let batch = match self.batch.is_empty() {
                    true => String::new(),
                    false => {
                        let values: Map<String, Value> = self.batch.iter().cloned().collect();
                        format!("\"batch\":{},", Value::Object(values))
                    }
                };
                format!("{{{batch}\"items\":[{}]}}", items.join(","))
            }
            ReplyFormat::Xml => {
                let values: String = self.batch.iter().map(|(n, value)| xml(n, value)).collect();
                let batch = match values.is_empty() {
                    true => String::new(),
                    false => format!("<batch>{values}</batch>\n"),
                };
                let items: String = answers
                    .iter()
                    .map(|answer| {
                        let pairs = self.fields.iter().zip(&answer.values);
                        let fields: String = pairs.map(|(field, v)| xml(&field.name, v)).collect();
                        format!("<item id=\"{}\">{fields}</item>\n", answer.id)
                    })
                    .collect();
                format!("<reply>\n{batch}{items}</reply>")
            }
            ReplyFormat::Yaml => {
                let line =
                    |indent: &str, name: &str, value: &Value| format!("{indent}{name}: {value}\n");
                let mut text = String::new();
                if !self.batch.is_empty() {
                    text.push_str("batch:\n");
                    self.batch.iter().for_each(|(n, value)| text.push_str(&line("  ", n, value)));
                }
                text.push_str("items:\n");
                for answer in answers {
                    text.push_str(&format!("  - id: {}\n", answer.id));
                    for (field, value) in self.fields.iter().zip(&answer.values) {
                        text.push_str(&line("    ", &field.name, value));
                    }
                }
                text + "end: true"
            }
        }
    }

    fn json(&self, answer: &ItemAnswer) -> String {
        let mut text = format!("{{\"id\":\"{}\"", answer.id);
        for (field, value) in self.fields.iter().zip(&answer.values) {
            text.push_str(&format!(",\"{}\":{value}", field.name));
        }
        text + "}"
    }
}

fn xml(name: &str, value: &Value) -> String {
    let escaped = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    };
    let content = match value {
        Value::Array(items) => {
            items.iter().map(|item| format!("<value>{}</value>", escaped(item))).collect()
        }
        value => escaped(value),
    };
    format!("<{name}>{content}</{name}>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn prompt(format: &str) -> String {
        format!(
            "Do it.\n\n- `text`: string, required. A text.\n- `n`: integer, required, at least 2, at most 40\n\
             - `label`: string, required, one of \"a | b\" | \"c\"\n- `all`: array of string values, required\n\
             Once for all items together, in `batch`:\n- `count`: integer, required\n\n\
             Reply in {format} and with nothing else\n{{\"id\":\"X\"}}\n\n{ITEMS_HEADING}\n\
             {{\"id\":\"k1\",\"data\":{{\"z\":\"row <7>\",\"a\":1}}}}\n{{\"id\":\"k2\",\"data\":{{\"z\":\"x\"}}}}\n"
        )
    }

    fn reply_in(format: &str, fault: ReplyFault) -> String {
        reply(&prompt(format), fault, &mut ChaCha8Rng::seed_from_u64(1))
    }

    #[test]
    fn answers_derive_from_their_item() {
        assert_eq!(
            reply_in("JSON", ReplyFault::None),
            r#"{"batch":{"count":2},"items":[{"id":"k1","text":"row <7>","n":7,"label":"c","all":["row <7>"]},{"id":"k2","text":"x","n":21,"label":"a | b","all":["x"]}]}"#
        );
        assert_eq!(
            reply_in("XML", ReplyFault::None),
            "<reply>\n<batch><count>2</count></batch>\n<item id=\"k1\"><text>row &lt;7&gt;</text><n>7</n><label>c</label><all><value>row &lt;7&gt;</value></all></item>\n<item id=\"k2\"><text>x</text><n>21</n><label>a | b</label><all><value>x</value></all></item>\n</reply>"
        );
        assert_eq!(
            reply_in("YAML", ReplyFault::None),
            "batch:\n  count: 2\nitems:\n  - id: k1\n    text: \"row <7>\"\n    n: 7\n    label: \"c\"\n    all: [\"row <7>\"]\n  - id: k2\n    text: \"x\"\n    n: 21\n    label: \"a | b\"\n    all: [\"x\"]\nend: true"
        );
        let thought = reply_in("YAML", ReplyFault::Think);
        let (thought, answer) = thought.split_once("</think>\n\n").unwrap();
        assert_eq!(answer, reply_in("YAML", ReplyFault::None));
        assert!(thought.starts_with("<think>\nThere is {\"id\":\"k1\",\"data\":\"…\"}.\n"));
        assert!(thought.contains("  - id: k1\n    text: \"x\"\n"), "{thought}");
        assert!(reply_in("JSON", ReplyFault::Stubborn).contains(r#""n":{"no":"n"}"#));
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        assert_eq!(reply("hello", ReplyFault::Unruly, rng), "There are no items.");
    }
}
