//! Parsing of a single list entry.

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use serde_json::{Map, Value};

/// Maximum nesting depth; no task needs more.
const MAX_DEPTH: usize = 16;

/// A collection while it is read.
enum OpenCollection {
    List { items: Vec<Value>, is_inline: bool },
    Table { entries: Map<String, Value>, name: Option<String>, is_inline: bool },
}

/// Parses a block as a table. Scalars stay strings; validation converts them to the types of the task.
pub(super) fn parse_table(block: &str) -> Result<Map<String, Value>, String> {
    let mut stack: Vec<OpenCollection> = Vec::new();
    let mut table = None;
    for event in Parser::new_from_str(block) {
        let (event, span) = event.map_err(|error| format!("not YAML: {}", error.info()))?;
        let value = match event {
            Event::MappingStart(..) | Event::SequenceStart(..) if stack.len() >= MAX_DEPTH => {
                return Err("it is nested too deeply".to_owned());
            }
            Event::MappingStart(style, ..) => {
                let is_inline = style == StructureStyle::Flow;
                stack.push(OpenCollection::Table { entries: Map::new(), name: None, is_inline });
                continue;
            }
            Event::SequenceStart(style, ..) => {
                let is_inline = style == StructureStyle::Flow;
                stack.push(OpenCollection::List { items: Vec::new(), is_inline });
                continue;
            }
            Event::Scalar(text, style, ..) => {
                let is_one_line = span.start.line() == span.end.line();
                let after = span.end.byte_offset().and_then(|at| block.get(at..));
                let after = after.ok_or_else(|| "not YAML".to_owned())?;
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if !is_block && is_cut_by_comment(&text, after) {
                    // After a quoted string it may be the rest of a damaged text.
                    return Err(match style {
                        ScalarStyle::Plain => "a text with ` #` in it is not in quotes",
                        _ => "there is more behind a text in quotes",
                    }
                    .to_owned());
                }
                parse_scalar(&text, style, is_one_line, stack.last())?
            }
            Event::MappingEnd | Event::SequenceEnd => match stack.pop() {
                Some(OpenCollection::List { items, .. }) => Value::Array(items),
                Some(OpenCollection::Table { entries, .. }) => Value::Object(entries),
                None => return Err("not YAML".to_owned()),
            },
            Event::Alias(..) => return Err("it has references".to_owned()),
            _ => continue,
        };
        match (stack.last_mut(), value) {
            (Some(OpenCollection::List { items, .. }), value) => items.push(value),
            (Some(OpenCollection::Table { entries, name, .. }), value) => {
                match (name.take(), value) {
                    (None, Value::String(key)) => *name = Some(key),
                    (None, _) => return Err("a name that is not a text".to_owned()),
                    (Some(key), _) if entries.contains_key(&key) => {
                        return Err(format!("`{key}` comes twice"));
                    }
                    (Some(key), value) => {
                        entries.insert(key, value);
                    }
                }
            }
            (None, Value::Object(entries)) if table.is_none() => table = Some(entries),
            (None, _) => return Err("an item that is not a table".to_owned()),
        }
    }
    table.ok_or_else(|| "an item without fields".to_owned())
}

/// Returns whether a string is followed by what YAML takes for a comment but may be part of the text.
/// Numbers and literals may have comments.
fn is_cut_by_comment(text: &str, after: &str) -> bool {
    let is_string = text.parse::<f64>().is_err() && !["true", "false", "null"].contains(&text);
    is_string && after.trim_start_matches([' ', '\t', ':']).starts_with('#')
}

/// Parses a string or null. In inline collections, YAML accepts almost anything as a string, even with a
/// lost quote or colon; this rejects such values.
fn parse_scalar(
    text: &str,
    style: ScalarStyle,
    is_one_line: bool,
    parent: Option<&OpenCollection>,
) -> Result<Value, String> {
    let is_plain = style == ScalarStyle::Plain;
    let (is_name, is_inline) = match parent {
        Some(OpenCollection::Table { name, is_inline, .. }) => (name.is_none(), *is_inline),
        Some(OpenCollection::List { is_inline, .. }) => (false, *is_inline),
        None => (false, false),
    };
    let is_partial = is_plain && (matches!(text, "" | "~") || text.contains('"'));
    if is_name && is_plain && text.contains(char::is_whitespace) {
        return Err(format!("`{text}` is no name"));
    }
    if is_inline && is_partial {
        return Err("a value between brackets that is not whole".to_owned());
    }
    if is_plain && text.starts_with(':') && text.contains('"') {
        return Err("a text that has lost its beginning".to_owned());
    }
    let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
    if is_block && text.is_empty() {
        return Err("a text that should follow `|` is missing".to_owned());
    }
    // The end of the string may be the end of another one.
    if !is_one_line && !is_block {
        return Err("a text goes over several lines without `|`".to_owned());
    }
    let is_null = is_plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
    // A name is always a string.
    Ok(if is_null && !is_name { Value::Null } else { Value::String(text.to_owned()) })
}
