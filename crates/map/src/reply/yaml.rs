//! Items in YAML: a list, each entry with its `id`.
//!
//! The text is cut into the entries of the list by their indentation, and each is read by itself,
//! so that one that is broken does not take the others with it. YAML does not show whether a text
//! ends where it should: an entry counts only when something follows it, which is why the end of a
//! list is asked for (`end: true`). The end of a fence will do as well.

use super::{Contents, Said, id_of};
use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Deeper nesting is not what was asked for.
const MOST_DEPTH: usize = 16;

pub(super) fn read(text: &str) -> Contents {
    let mut contents = Contents::default();
    regions(text).iter().for_each(|region| read_region(region, &mut contents));
    contents.problem.get_or_insert_with(|| "there is no list of items in it".to_owned());
    contents
}

/// Lines of a text that may be YAML.
struct Region<'t> {
    lines: Vec<&'t str>,
    /// A fence says that it ends here.
    is_closed: bool,
}

/// What stands between fences, else everything.
fn regions(text: &str) -> Vec<Region<'_>> {
    let mut regions: Vec<Region<'_>> = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        match (line.trim_start().starts_with("```"), &mut open) {
            (true, Some(lines)) => {
                regions.push(Region { lines: std::mem::take(lines), is_closed: true });
                open = None;
            }
            (true, None) => open = Some(Vec::new()),
            (false, Some(lines)) => lines.push(line),
            (false, None) => {}
        }
    }
    if let Some(lines) = open {
        regions.push(Region { lines, is_closed: false });
    }
    if regions.is_empty() {
        regions.push(Region { lines: text.lines().collect(), is_closed: false });
    }
    regions
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn is_entry(line: &str) -> bool {
    let line = line.trim();
    line == "-" || line.starts_with("- ")
}

/// All lists of a region. There should be one, but what is said in a second one counts as well.
fn read_region(region: &Region<'_>, contents: &mut Contents) {
    let lines = &region.lines;
    let mut at = 0;
    while let Some(offset) = lines[at..].iter().position(|line| is_entry(line)) {
        at += offset;
        let end = end_of_block(lines, at, indentation(lines[at]));
        let is_complete = region.is_closed || end < lines.len();
        if !is_complete {
            contents.problem.get_or_insert_with(|| {
                "it ends in the middle of an item, or without the last line `end: true`".to_owned()
            });
            break;
        }
        // The dash becomes a blank, and the entry a block of its own.
        let mut block = vec![lines[at].replacen('-', " ", 1)];
        block.extend(lines[at + 1..end].iter().map(|line| (*line).to_owned()));
        take(&block.join("\n"), contents);
        at = end;
    }
    let batch = lines.iter().position(|line| line.trim_end() == "batch:");
    if let Some(start) = batch {
        let end = end_of_block(lines, start, indentation(lines[start]));
        if region.is_closed || end < lines.len() {
            contents.batch = parse(&lines[start + 1..end].join("\n")).ok();
        }
    }
}

/// The first line after `start` that is not part of its block: it is not blank, and not deeper.
fn end_of_block(lines: &[&str], start: usize, depth: usize) -> usize {
    let is_outside = |line: &&str| !is_blank(line) && indentation(line) <= depth;
    let rest = lines[start + 1..].iter().position(is_outside);
    rest.map_or(lines.len(), |offset| start + 1 + offset)
}

fn take(block: &str, contents: &mut Contents) {
    match parse(block) {
        Ok(fields) => {
            if let Some(id) = fields.get("id").and_then(id_of) {
                contents.items.push(Said { id, fields: Ok(fields) });
            }
        }
        Err(problem) => {
            // Its id may be readable though it is not.
            let id = block.lines().find_map(|line| line.trim().strip_prefix("id:"));
            if let Some(id) = id {
                let id = id.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
                contents.items.push(Said { id, fields: Err(problem.clone()) });
            }
            contents.problem.get_or_insert(problem);
        }
    }
}

/// A collection that is being read.
enum Open {
    List(Vec<Value>),
    Table { entries: Map<String, Value>, name: Option<String> },
}

/// A block as a table. What types its values have is for the task to say, so all are texts.
fn parse(block: &str) -> Result<Map<String, Value>, String> {
    let mut stack: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(block) {
        let (event, _) = event.map_err(|error| format!("not YAML: {}", error.info()))?;
        let value = match event {
            Event::MappingStart(..) | Event::SequenceStart(..) if stack.len() >= MOST_DEPTH => {
                return Err("it is nested too deeply".to_owned());
            }
            Event::MappingStart(..) => {
                stack.push(Open::Table { entries: Map::new(), name: None });
                continue;
            }
            Event::SequenceStart(..) => {
                stack.push(Open::List(Vec::new()));
                continue;
            }
            Event::Scalar(text, style, ..) => {
                let is_null = style == ScalarStyle::Plain
                    && matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL");
                if is_null { Value::Null } else { Value::String(text.into_owned()) }
            }
            Event::MappingEnd | Event::SequenceEnd => match stack.pop() {
                Some(Open::List(items)) => Value::Array(items),
                Some(Open::Table { entries, .. }) if stack.is_empty() => return Ok(entries),
                Some(Open::Table { entries, .. }) => Value::Object(entries),
                None => return Err("not YAML".to_owned()),
            },
            Event::Alias(..) => return Err("it has references".to_owned()),
            _ => continue,
        };
        match stack.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Table { entries, name }) => match (name.take(), value) {
                (None, Value::String(key)) => *name = Some(key),
                (None, _) => return Err("a name that is not a text".to_owned()),
                (Some(key), value) => {
                    if entries.get(&key).is_some_and(|earlier| *earlier != value) {
                        return Err(format!("`{key}` comes twice"));
                    }
                    entries.insert(key, value);
                }
            },
            None => return Err("an item that is not a table".to_owned()),
        }
    }
    Err("an item without fields".to_owned())
}
