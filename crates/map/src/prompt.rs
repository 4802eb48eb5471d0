//! Prompts: instructions, the fields of an answer, an example, and the items.
//!
//! Cache keys depend on every byte of a prompt, so a change of wording makes cached responses useless.

use crate::reply::ReplyItemError;
use crate::row::{Row, to_plain};
use crate::task::{Field, ReplyFormat, Task};
use bakeoff_core::{Message, OutputFormat, Request};
use serde_json::{Map, Value, json};

/// Heading of the items.
pub(crate) const ITEMS_HEADING: &str = "Items, one JSON object per line:";

/// Heading of the fields that are requested once per pack.
pub(crate) const BATCH_HEADING: &str = "Once for all items together, in `batch`:";

/// Id in the example; it is never the id of an item.
const EXAMPLE_ID: &str = "ID-OF-THE-ITEM";

/// Returns the line of an item in a prompt: `{"id":"k3v9qp","data":{…}}`.
pub(crate) fn item_line(task: &Task, row: &Row, id: &str) -> String {
    let mut line = format!("{{\"id\":\"{id}\",\"data\":{{");
    let mut is_first = true;
    let mut add = |name: &str, value: &str| {
        if !is_first {
            line.push(',');
        }
        is_first = false;
        line.push_str(&Value::from(name).to_string());
        line.push(':');
        line.push_str(value);
    };
    match &task.show {
        None => row.fields.iter().for_each(|(name, value)| add(name, &to_one_line(value.get()))),
        Some(shown) => {
            for shown in shown {
                let Some(value) = row.get(&shown.field) else { continue };
                add(&shown.field, &truncate(value, shown.max_chars));
            }
        }
    }
    line.push_str("}}");
    line
}

/// Replaces line ends in JSON by spaces.
fn to_one_line(json: &str) -> String {
    match json.contains(['\n', '\r']) {
        // Outside of strings, line ends are white space; within strings they are escaped.
        true => json.replace(['\n', '\r'], " "),
        false => json.to_owned(),
    }
}

/// Shortens a value to this number of characters.
fn truncate(json: &str, max_chars: Option<usize>) -> String {
    let Some(max_chars) = max_chars else { return to_one_line(json) };
    let text = to_plain(json);
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => Value::from(format!("{}…", &text[..end])).to_string(),
        None => to_one_line(json),
    }
}

/// Returns the part of a prompt before the items.
pub(crate) fn preamble(task: &Task, format: ReplyFormat) -> String {
    let mut text = task.instructions.trim().to_owned();
    text.push_str("\n\nAnswer about every item below, each by itself. The fields of an answer:\n");
    text.extend(task.output.iter().map(|field| field.describe() + "\n"));
    if !task.batch.is_empty() {
        text.push_str(BATCH_HEADING);
        text.push('\n');
        text.extend(task.batch.iter().map(|field| field.describe() + "\n"));
    }
    let name = match format {
        ReplyFormat::Json => "JSON",
        ReplyFormat::Xml => "XML",
        ReplyFormat::Yaml => "YAML",
    };
    text.push_str(&format!(
        "\nReply in {name} and with nothing else, like this, with the id of each item:\n{}\n\n{ITEMS_HEADING}\n",
        example(task, format)
    ));
    text
}

/// Builds the request for these items.
pub(crate) fn build_request(
    task: &Task,
    format: ReplyFormat,
    use_structured_output: bool,
    items: &[String],
) -> Request {
    let mut messages: Vec<Message> = task.system.iter().map(Message::system).collect();
    messages.push(Message::user(preamble(task, format) + &items.join("\n")));
    let is_structured = use_structured_output && format == ReplyFormat::Json && has_schema(task);
    Request {
        messages,
        max_tokens: task.max_tokens,
        temperature: task.temperature,
        output: is_structured.then(|| OutputFormat::Schema {
            name: "answers".to_owned(),
            schema: reply_schema(task),
        }),
        ..Request::default()
    }
}

/// Returns the request extended by an invalid reply and the question to correct it.
pub(crate) fn reask(request: &Request, reply: &str, problem: &str) -> Request {
    let mut request = request.clone();
    request.messages.push(Message::assistant(reply));
    request.messages.push(Message::user(format!(
        "That reply cannot be used: {problem}. Send the whole reply again, in the form that was \
         asked for and with nothing else."
    )));
    request
}

/// Describes an invalid answer for [`reask`]. Equal to the error shown to users, but for texts that prompts
/// have kept so that cached responses stay valid.
pub(crate) fn describe_item_error(error: &ReplyItemError) -> String {
    match error {
        ReplyItemError::Missing { unknown_ids: unknown @ 1.. } => {
            format!("the reply has no answer for it, and {unknown} for unknown ids")
        }
        error => error.to_string(),
    }
}

fn has_schema(task: &Task) -> bool {
    task.output.iter().chain(&task.batch).all(Field::has_schema)
}

/// Returns the JSON Schema of a reply, for structured output.
fn reply_schema(task: &Task) -> Value {
    let object = |fields: &[Field], first: Option<(&str, Value)>| {
        let mut properties: Map<String, Value> =
            fields.iter().map(|field| (field.name.clone(), field.schema())).collect();
        let mut required: Vec<&str> = first.iter().map(|(name, _)| *name).collect();
        required.extend(fields.iter().map(|field| field.name.as_str()));
        let required = json!(required);
        properties.extend(first.map(|(name, schema)| (name.to_owned(), schema)));
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let answer = object(&task.output, Some(("id", json!({ "type": "string" }))));
    let items = json!({ "type": "array", "items": answer });
    let mut schema = json!({
        "type": "object",
        "properties": { "items": items },
        "required": ["items"],
        "additionalProperties": false,
    });
    if !task.batch.is_empty() {
        schema["properties"]["batch"] = object(&task.batch, None);
        schema["required"] = json!(["batch", "items"]);
    }
    schema
}

fn example(task: &Task, format: ReplyFormat) -> String {
    match format {
        ReplyFormat::Json => {
            let fields = |fields: &[Field]| -> Vec<String> {
                let pair = |field: &Field| format!("\"{}\":{}", field.name, field.example());
                fields.iter().map(pair).collect()
            };
            let batch = match task.batch.is_empty() {
                true => String::new(),
                false => format!("\"batch\":{{{}}},", fields(&task.batch).join(",")),
            };
            let answer = fields(&task.output).join(",");
            format!("{{{batch}\"items\":[{{\"id\":\"{EXAMPLE_ID}\",{answer}}}]}}")
        }
        ReplyFormat::Xml => {
            let fields = |fields: &[Field]| -> String {
                fields.iter().map(|field| element(field, &field.example())).collect()
            };
            let batch = match task.batch.is_empty() {
                true => String::new(),
                false => format!("<batch>{}</batch>\n", fields(&task.batch)),
            };
            let answer = fields(&task.output);
            format!("<reply>\n{batch}<item id=\"{EXAMPLE_ID}\">{answer}</item>\n</reply>")
        }
        ReplyFormat::Yaml => {
            let fields = |fields: &[Field], indent: &str| -> String {
                let line = |field: &Field| format!("{indent}{}: {}\n", field.name, field.example());
                fields.iter().map(line).collect()
            };
            let batch = match task.batch.is_empty() {
                true => String::new(),
                false => format!("batch:\n{}", fields(&task.batch, "  ")),
            };
            let answer = fields(&task.output, "    ");
            format!("{batch}items:\n  - id: {EXAMPLE_ID}\n{answer}end: true")
        }
    }
}

fn element(field: &Field, value: &Value) -> String {
    let content = match value {
        Value::Array(items) => items
            .iter()
            .map(|item| format!("<value>{}</value>", to_plain(&item.to_string())))
            .collect(),
        value => to_plain(&value.to_string()),
    };
    format!("<{0}>{content}</{0}>", field.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{FieldType, ShownField};
    use serde_json::value::RawValue;

    fn task() -> Task {
        let label = Field {
            options: Some(vec![json!("good"), json!("bad")]),
            description: Some("How it\nsounds.".to_owned()),
            ..Field::new("label", FieldType::String)
        };
        let score = Field {
            min: Some(1.0),
            max: Some(5.0),
            required: false,
            ..Field::new("score", FieldType::Integer)
        };
        let tags = Field { max: Some(3.0), ..Field::new("tags", FieldType::Array) };
        let mut task = Task::new("Label each review.\n", vec![label, score, tags]);
        task.batch = vec![Field::new("language", FieldType::String)];
        task
    }

    fn row(fields: &[(&str, &str)]) -> Row {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), raw(value)));
        Row { index: 0, fields: fields.collect() }
    }

    #[test]
    fn preamble_describes_fields_and_reply_format() {
        insta::assert_snapshot!(preamble(&task(), ReplyFormat::Json), @r#"
        Label each review.

        Answer about every item below, each by itself. The fields of an answer:
        - `label`: string, required, one of "good" | "bad". How it sounds.
        - `score`: integer, may be left out, at least 1, at most 5
        - `tags`: array of string values, required, at most 3 values
        Once for all items together, in `batch`:
        - `language`: string, required

        Reply in JSON and with nothing else, like this, with the id of each item:
        {"batch":{"language":"…"},"items":[{"id":"ID-OF-THE-ITEM","label":"good","score":1,"tags":["…"]}]}

        Items, one JSON object per line:
        "#);
        insta::assert_snapshot!(example(&task(), ReplyFormat::Xml), @r#"
        <reply>
        <batch><language>…</language></batch>
        <item id="ID-OF-THE-ITEM"><label>good</label><score>1</score><tags><value>…</value></tags></item>
        </reply>
        "#);
        insta::assert_snapshot!(example(&task(), ReplyFormat::Yaml), @r#"
        batch:
          language: "…"
        items:
          - id: ID-OF-THE-ITEM
            label: "good"
            score: 1
            tags: ["…"]
        end: true
        "#);
    }

    #[test]
    fn item_shows_selected_fields_shortened() {
        let mut task = task();
        let row = row(&[("a", "\"x\\ny\""), ("b", "[1,\n 2]"), ("c", "\"éàü\"")]);
        assert_eq!(
            item_line(&task, &row, "k"),
            r#"{"id":"k","data":{"a":"x\ny","b":[1,  2],"c":"éàü"}}"#
        );
        let shown = |field: &str, max_chars| ShownField { field: field.to_owned(), max_chars };
        task.show = Some(vec![
            shown("c", Some(2)),
            shown("gone", None),
            shown("b", Some(3)),
            shown("a", Some(3)),
        ]);
        assert_eq!(
            item_line(&task, &row, "k"),
            r#"{"id":"k","data":{"c":"éà…","b":"[1,…","a":"x\ny"}}"#
        );
    }

    #[test]
    fn structured_output_is_used_if_a_schema_can_describe_the_reply() {
        let items = ["{}".to_owned()];
        let output = |task: &Task, format, is_structured| {
            build_request(task, format, is_structured, &items).output.map(|output| match output {
                OutputFormat::Schema { schema, .. } => schema,
                OutputFormat::Json => Value::Null,
            })
        };
        let mut task = task();
        let schema = output(&task, ReplyFormat::Json, true).unwrap();
        let answer = &schema["properties"]["items"]["items"];
        assert_eq!(answer["required"], json!(["id", "label", "score", "tags"]));
        assert_eq!(answer["properties"]["score"]["type"], json!(["integer", "null"]));
        assert_eq!(schema["required"], json!(["batch", "items"]));
        assert_eq!(output(&task, ReplyFormat::Json, false), None);
        assert_eq!(output(&task, ReplyFormat::Yaml, true), None);
        task.output.push(Field::new("free", FieldType::Object));
        assert_eq!(output(&task, ReplyFormat::Json, true), None);
    }
}
