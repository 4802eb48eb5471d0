//! One entry of a list, read by itself.

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use serde_json::{Map, Value};

/// Deeper nesting is not what was asked for.
const MOST_DEPTH: usize = 16;

/// A collection that is being read.
enum Open {
    List { items: Vec<Value>, is_inline: bool },
    Table { entries: Map<String, Value>, name: Option<String>, is_inline: bool },
}

/// A block as a table. What types its values have is for the task to say, so all are texts.
pub(super) fn parse(block: &str) -> Result<Map<String, Value>, String> {
    let mut stack: Vec<Open> = Vec::new();
    let mut whole = None;
    for event in Parser::new_from_str(block) {
        let (event, span) = event.map_err(|error| format!("not YAML: {}", error.info()))?;
        let value = match event {
            Event::MappingStart(..) | Event::SequenceStart(..) if stack.len() >= MOST_DEPTH => {
                return Err("it is nested too deeply".to_owned());
            }
            Event::MappingStart(style, ..) => {
                let is_inline = style == StructureStyle::Flow;
                stack.push(Open::Table { entries: Map::new(), name: None, is_inline });
                continue;
            }
            Event::SequenceStart(style, ..) => {
                let is_inline = style == StructureStyle::Flow;
                stack.push(Open::List { items: Vec::new(), is_inline });
                continue;
            }
            Event::Scalar(text, style, ..) => {
                let is_one_line = span.start.line() == span.end.line();
                let behind = span.end.byte_offset().and_then(|at| block.get(at..));
                let behind = behind.ok_or_else(|| "not YAML".to_owned())?;
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if !is_block && is_cut_by_comment(&text, behind) {
                    // Behind quotes it may be the rest of a text, of which some was lost.
                    return Err(match style {
                        ScalarStyle::Plain => "a text with ` #` in it is not in quotes",
                        _ => "there is more behind a text in quotes",
                    }
                    .to_owned());
                }
                scalar(&text, style, is_one_line, stack.last())?
            }
            Event::MappingEnd | Event::SequenceEnd => match stack.pop() {
                Some(Open::List { items, .. }) => Value::Array(items),
                Some(Open::Table { entries, .. }) => Value::Object(entries),
                None => return Err("not YAML".to_owned()),
            },
            Event::Alias(..) => return Err("it has references".to_owned()),
            _ => continue,
        };
        match (stack.last_mut(), value) {
            (Some(Open::List { items, .. }), value) => items.push(value),
            (Some(Open::Table { entries, name, .. }), value) => match (name.take(), value) {
                (None, Value::String(key)) => *name = Some(key),
                (None, _) => return Err("a name that is not a text".to_owned()),
                (Some(key), _) if entries.contains_key(&key) => {
                    return Err(format!("`{key}` comes twice"));
                }
                (Some(key), value) => {
                    entries.insert(key, value);
                }
            },
            (None, Value::Object(entries)) if whole.is_none() => whole = Some(entries),
            (None, _) => return Err("an item that is not a table".to_owned()),
        }
    }
    whole.ok_or_else(|| "an item without fields".to_owned())
}

/// Whether a text without quotes ends at what YAML takes for a comment, and the model perhaps not. A
/// number, or a word that is not a text, may be commented on.
fn is_cut_by_comment(text: &str, behind: &str) -> bool {
    let is_text = text.parse::<f64>().is_err() && !["true", "false", "null"].contains(&text);
    is_text && behind.trim_start_matches([' ', '\t', ':']).starts_with('#')
}

/// A text, or null. Between brackets YAML takes almost anything for a text, also what has lost a
/// quote or a colon; such things are refused.
fn scalar(
    text: &str,
    style: ScalarStyle,
    is_one_line: bool,
    around: Option<&Open>,
) -> Result<Value, String> {
    let is_plain = style == ScalarStyle::Plain;
    let (is_name, is_inline) = match around {
        Some(Open::Table { name, is_inline, .. }) => (name.is_none(), *is_inline),
        Some(Open::List { is_inline, .. }) => (false, *is_inline),
        None => (false, false),
    };
    let is_half = is_plain && (matches!(text, "" | "~") || text.contains('"'));
    if is_name && is_plain && text.contains(char::is_whitespace) {
        return Err(format!("`{text}` is no name"));
    }
    if is_inline && is_half {
        return Err("a value between brackets that is not whole".to_owned());
    }
    if is_plain && text.starts_with(':') && text.contains('"') {
        return Err("a text that has lost its beginning".to_owned());
    }
    let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
    if is_block && text.is_empty() {
        return Err("a text that should follow `|` is missing".to_owned());
    }
    // Its end may be that of another one.
    if !is_one_line && !is_block {
        return Err("a text goes over several lines without `|`".to_owned());
    }
    let is_null = is_plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
    // A name is a text, whatever it says.
    Ok(if is_null && !is_name { Value::Null } else { Value::String(text.to_owned()) })
}
