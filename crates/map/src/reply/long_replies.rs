//! Tests of very long, repetitive replies, as models write them in a loop. Reading must take linear time;
//! with quadratic time these tests take minutes.

use super::*;
use crate::task::FieldType;

/// Length at which quadratic time is noticeable.
const MIN_BYTES: usize = 100_000;

/// Start, repeated part and end of each reply. `#` is replaced by a counter.
const LOOPS: [(&str, &str, &str); 45] = [
    ("<think>", "<think>", ""),
    (" ", "</think>", ""),
    ("", "{</think>\n", ""),
    ("", "- \n", ""),
    ("", "- id: a\n", "end: true"),
    ("", "- id: a\n  note: x\n", "end: true"),
    ("", "  - id: a\n", "- id: b\nend: true"),
    ("", "- ", ""),
    ("- id: a\n  note: ", "- ", "\nend: true"),
    ("- id: a\n", "\t- x\n", "end: true"),
    ("", "\t- x: y\n", "end: true"),
    ("", "- x:\n\n\n", "end: true"),
    ("- id: a\n  tags: [", "a, ", "a]\nend: true"),
    ("- id: a\n  tags:\n", "  - a\n", "end: true"),
    ("- id: a\n  tags: ", "[", "\nend: true"),
    ("- id: a\n  of: ", "{", "\nend: true"),
    ("- id: a\n  of: {", "k#: v, ", "k: v}\nend: true"),
    ("- id: a\n  note: ", "&a ", "\nend: true"),
    ("- id: a\n", "  k#: v\n", "end: true"),
    ("- id: a\n  note: |\n", "    - id: b\n", "end: true"),
    ("", "note: x\n", ""),
    ("", "```\n", ""),
    ("", "batch:\n", ""),
    ("<item id=\"a\"><note>", "<a#></a#>", "</note></item>"),
    ("<item id=\"a\"><note>", "<a#>", "</note></item>"),
    ("<item id=\"a\">", "<tags>x</tags>", "</item>"),
    ("<item id=\"a\">", "<note>x</note>", "</item>"),
    ("<item id=\"a\"><tags>", "<value>x</value>", "</tags></item>"),
    ("<item id=\"a\">", "<a#>x</a#>", "</item>"),
    ("", "<item id=\"a\">", ""),
    ("", "<item id=\"a\"><note>x</note></item>", ""),
    ("", "<item>\n{\"id\":\"a\"}\n", ""),
    ("", "<", ""),
    ("", "{", ""),
    ("", "{\n", ""),
    ("", "[", ""),
    ("<item id=\"a\"><note>", "&", "</note></item>"),
    ("", "\"", ""),
    ("", "{\"", ""),
    ("", "{\"id\":\"a\",\"note\":}\n", ""),
    ("[", "{\"id\":\"a\",\"note\":},\n", "]"),
    ("", "{\"a\":", ""),
    ("", "{\"note\":", ""),
    ("", "{\"id\":\"a\",\"note\":\"x\"}\n", ""),
    ("{\"items\":[", "{\"id\":\"a\",\"of\":{\"k\":[1]}},", "]}"),
];

fn build_reply((start, part, end): (&str, &str, &str)) -> String {
    let mut text = start.to_owned();
    let mut number = 0;
    while text.len() < MIN_BYTES {
        text.push_str(&part.replace('#', &number.to_string()));
        number += 1;
    }
    text + end
}

#[test]
fn repetitive_replies_are_read_in_linear_time() {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let mut fields = vec![optional("note", FieldType::String), optional("tags", FieldType::Array)];
    let flat = Task::new("x", fields.clone());
    fields.push(optional("of", FieldType::Object));
    let nested = Task::new("x", fields);
    let ids = ["a".to_owned(), "b".to_owned()];
    for part in LOOPS {
        let text = build_reply(part);
        let _ = align(&text, ReplyFormat::Json, &flat, &ids);
        // If answers can contain objects, the other formats may not be read.
        for format in ReplyFormat::ALL {
            let _ = align(&text, format, &nested, &ids);
        }
    }
}

#[test]
fn reply_above_the_maximum_size_is_rejected() {
    let task = Task::new("x", vec![Field::new("note", FieldType::String)]);
    let item = r#"{"id":"a","note":"x"}"#;
    let read = |text: &str| align(text, ReplyFormat::Json, &task, &["a".to_owned()]).map(drop);
    assert_eq!(read(&format!("{item}{}", " ".repeat(MIN_BYTES))), Ok(()));
    let long = format!("{item}{}", " ".repeat(MAX_REPLY_BYTES));
    assert_eq!(read(&long), Err("it is longer than 4 MiB".to_owned()));
}
