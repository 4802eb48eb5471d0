//! Answers about items that share a request: reads their ids and the fields that are asked for out
//! of the prompt, and makes up values that tell which item they came from.
//!
//! A text is the first value of an item's data; a number is the last number in it. Where there is
//! none, or none within the bounds, it follows from a hash of the data, as options do, and whether
//! something is true: so answers differ as those of real models do, and equal items have equal ones.

use super::item::{self, Item};
use super::mischief::{self, Mischief};
use rand::rngs::ChaCha8Rng;
use serde_json::{Map, Value, json};

/// Stands before the items of a prompt.
const ITEMS: &str = "Items, one JSON object per line:";

/// Stands before the fields that are asked for once.
const BATCH: &str = "Once for all items together";

/// How a reply is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Xml,
    Yaml,
}

/// A field that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) name: String,
    kind: String,
    options: Vec<Value>,
    least: Option<f64>,
    most: Option<f64>,
}

/// An answer: an id, and the values of the fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) values: Vec<Value>,
}

/// The reply to a prompt.
pub(crate) fn reply(prompt: &str, mischief: Mischief, rng: &mut ChaCha8Rng) -> String {
    let Some((head, items)) = prompt.split_once(ITEMS) else {
        return "There are no items.".to_owned();
    };
    let (about_items, about_all) = head.split_once(BATCH).unwrap_or((head, ""));
    let (fields, facts) = (wanted(about_items), wanted(about_all));
    let form = match head {
        _ if head.contains("Reply in XML") => Form::Xml,
        _ if head.contains("Reply in YAML") => Form::Yaml,
        _ => Form::Json,
    };
    let mut answers = Vec::new();
    for line in items.lines() {
        let Some(item) = item::read(line) else { continue };
        let is_stubborn = mischief == Mischief::Stubborn;
        let value = |field| if is_stubborn { wrong(field) } else { value(field, &item) };
        let values = fields.iter().map(value).collect();
        answers.push(Answer { id: item.id.clone(), values });
    }
    let count = answers.len();
    let all = Item::of(&format!("{count} items, {count}"));
    let facts: Vec<(String, Value)> =
        facts.iter().map(|field| (field.name.clone(), value(field, &all))).collect();
    mischief::write(mischief, form, answers, &Shape { fields: &fields, facts: &facts }, rng)
}

/// What a reply is made of besides its answers.
pub(super) struct Shape<'a> {
    fields: &'a [Wanted],
    facts: &'a [(String, Value)],
}

/// Lines such as ``- `score`: integer, required, at least 1, at most 5``.
fn wanted(text: &str) -> Vec<Wanted> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`: "));
    lines
        .map(|(name, about)| {
            let after = |mark: &str| about.split_once(mark).map(|(_, after)| after);
            let number = |mark: &str| {
                let text = after(mark)?;
                let end = text.find(|c: char| !"0123456789.-".contains(c)).unwrap_or(text.len());
                text[..end].trim_end_matches('.').parse().ok()
            };
            let options = after(", one of ").map(options).unwrap_or_default();
            let kind = about.split([',', ' ', '.']).next().unwrap_or_default();
            Wanted {
                name: name.to_owned(),
                kind: kind.to_owned(),
                options,
                least: number(", at least "),
                most: number(", at most "),
            }
        })
        .collect()
}

/// JSON values with bars between them, up to what is none.
fn options(text: &str) -> Vec<Value> {
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

fn value(field: &Wanted, item: &Item) -> Value {
    let text = &item.text;
    if !field.options.is_empty() {
        return field.options[item.draw(&field.name, field.options.len() as u64) as usize].clone();
    }
    let length = field.most.map_or(usize::MAX, |most| most as usize);
    match field.kind.as_str() {
        "integer" | "number" => json!(number(field, item)),
        "boolean" => json!(item.draw(&field.name, 2) == 0),
        "array" => json!([text]),
        "object" => json!({ "of": text }),
        _ => json!(text.chars().take(length).collect::<String>()),
    }
}

fn number(field: &Wanted, item: &Item) -> i64 {
    let least = field.least.map(|least| least.ceil() as i64);
    let most = field.most.map(|most| most.floor() as i64);
    let digits = item.text.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
    let own = digits.and_then(|digits| digits.parse::<i64>().ok());
    let number = own.unwrap_or(item.text.chars().count() as i64);
    let is_within =
        least.is_none_or(|least| least <= number) && most.is_none_or(|most| number <= most);
    match (own, least, most) {
        (Some(own), ..) if is_within => own,
        (_, Some(least), Some(most)) if least <= most => {
            let width = most.abs_diff(least).saturating_add(1);
            least.saturating_add_unsigned(item.draw(&field.name, width))
        }
        _ => {
            let number = most.map_or(number, |most| number.min(most));
            least.map_or(number, |least| number.max(least))
        }
    }
}

/// A value that the field cannot have.
fn wrong(field: &Wanted) -> Value {
    match field.kind.as_str() {
        "object" => json!("nothing"),
        _ => json!({ "no": field.name }),
    }
}

impl Shape<'_> {
    /// The whole reply.
    pub(super) fn write(&self, form: Form, answers: &[Answer]) -> String {
        match form {
            Form::Json => {
                let items: Vec<String> = answers.iter().map(|answer| self.json(answer)).collect();
                let batch = match self.facts.is_empty() {
                    true => String::new(),
                    false => {
                        let facts: Map<String, Value> = self.facts.iter().cloned().collect();
                        format!("\"batch\":{},", Value::Object(facts))
                    }
                };
                format!("{{{batch}\"items\":[{}]}}", items.join(","))
            }
            Form::Xml => {
                let facts: String = self.facts.iter().map(|(n, value)| xml(n, value)).collect();
                let batch = match facts.is_empty() {
                    true => String::new(),
                    false => format!("<batch>{facts}</batch>\n"),
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
            Form::Yaml => {
                let line =
                    |indent: &str, name: &str, value: &Value| format!("{indent}{name}: {value}\n");
                let mut text = String::new();
                if !self.facts.is_empty() {
                    text.push_str("batch:\n");
                    self.facts.iter().for_each(|(n, value)| text.push_str(&line("  ", n, value)));
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

    fn json(&self, answer: &Answer) -> String {
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

    fn prompt(form: &str) -> String {
        format!(
            "Do it.\n\n- `text`: string, required. A text.\n- `n`: integer, required, at least 2, at most 40\n\
             - `label`: string, required, one of \"a | b\" | \"c\"\n- `all`: array of string values, required\n\
             Once for all items together, in `batch`:\n- `count`: integer, required\n\n\
             Reply in {form} and with nothing else\n{{\"id\":\"X\"}}\n\n{ITEMS}\n\
             {{\"id\":\"k1\",\"data\":{{\"z\":\"row <7>\",\"a\":1}}}}\n{{\"id\":\"k2\",\"data\":{{\"z\":\"x\"}}}}\n"
        )
    }

    fn said(form: &str, mischief: Mischief) -> String {
        reply(&prompt(form), mischief, &mut ChaCha8Rng::seed_from_u64(1))
    }

    #[test]
    fn answers_tell_which_item_they_are_about() {
        assert_eq!(
            said("JSON", Mischief::None),
            r#"{"batch":{"count":2},"items":[{"id":"k1","text":"row <7>","n":7,"label":"c","all":["row <7>"]},{"id":"k2","text":"x","n":21,"label":"a | b","all":["x"]}]}"#
        );
        assert_eq!(
            said("XML", Mischief::None),
            "<reply>\n<batch><count>2</count></batch>\n<item id=\"k1\"><text>row &lt;7&gt;</text><n>7</n><label>c</label><all><value>row &lt;7&gt;</value></all></item>\n<item id=\"k2\"><text>x</text><n>21</n><label>a | b</label><all><value>x</value></all></item>\n</reply>"
        );
        assert_eq!(
            said("YAML", Mischief::None),
            "batch:\n  count: 2\nitems:\n  - id: k1\n    text: \"row <7>\"\n    n: 7\n    label: \"c\"\n    all: [\"row <7>\"]\n  - id: k2\n    text: \"x\"\n    n: 21\n    label: \"a | b\"\n    all: [\"x\"]\nend: true"
        );
        let thought = said("YAML", Mischief::Think);
        let (thought, answer) = thought.split_once("</think>\n\n").unwrap();
        assert_eq!(answer, said("YAML", Mischief::None));
        assert!(thought.starts_with("<think>\nThere is {\"id\":\"k1\",\"data\":\"…\"}.\n"));
        assert!(thought.contains("  - id: k1\n    text: \"x\"\n"), "{thought}");
        assert!(said("JSON", Mischief::Stubborn).contains(r#""n":{"no":"n"}"#));
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        assert_eq!(reply("hello", Mischief::Unruly, rng), "There are no items.");
    }
}
