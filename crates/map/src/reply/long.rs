//! Replies that go on and on, as models in a loop write them. Each is read in about the time that it
//! takes to look at it a few times; a reader that looks back for every part of it takes minutes.

use super::*;
use crate::task::FieldType;

/// Enough that the square of it is felt.
const LENGTH: usize = 100_000;

/// A beginning, what comes again and again, and an end. `#` is another number each time.
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

fn looping((start, part, end): (&str, &str, &str)) -> String {
    let mut text = start.to_owned();
    let mut number = 0;
    while text.len() < LENGTH {
        text.push_str(&part.replace('#', &number.to_string()));
        number += 1;
    }
    text + end
}

#[test]
fn replies_that_go_on_and_on_are_read_in_one_go() {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let mut fields = vec![optional("note", FieldType::String), optional("tags", FieldType::Array)];
    let flat = Task::new("x", fields.clone());
    fields.push(optional("of", FieldType::Object));
    let nested = Task::new("x", fields);
    let ids = ["a".to_owned(), "b".to_owned()];
    for part in LOOPS {
        let text = looping(part);
        let _ = align(&text, Format::Json, &flat, &ids);
        // Where answers can hold objects, the other forms may be left out.
        for format in Format::ALL {
            let _ = align(&text, format, &nested, &ids);
        }
    }
}

#[test]
fn no_reply_is_longer_than_any_answer() {
    let task = Task::new("x", vec![Field::new("note", FieldType::String)]);
    let item = r#"{"id":"a","note":"x"}"#;
    let read = |text: &str| align(text, Format::Json, &task, &["a".to_owned()]).map(drop);
    assert_eq!(read(&format!("{item}{}", " ".repeat(LENGTH))), Ok(()));
    let long = format!("{item}{}", " ".repeat(LONGEST));
    assert_eq!(read(&long), Err("it is longer than 4 MiB".to_owned()));
}
