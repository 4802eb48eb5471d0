//! Items in YAML: a list, each entry with its `id`.
//!
//! The text is cut into the entries of the list by their indentation, and each is read by itself,
//! so that one that is broken does not take the others with it. YAML does not show whether a text
//! ends where it should: an entry counts only when something follows it, which is why the end of a
//! list is asked for (`end: true`). The end of a fence will do as well. What follows must not look
//! like a field of the entry that has lost its indentation, or like the rest of one that has lost
//! its beginning.

mod lines;
mod outline;
mod parse;

use super::{Contents, Expected, Said, id_of};
use lines::{Region, indentation, is_entry, is_tabbed, pair, regions};
use outline::{Outline, is_id};

pub(super) fn read(text: &str, expected: &Expected<'_>) -> Contents {
    let mut contents = Contents::default();
    regions(text).iter().for_each(|region| read_region(region, expected, &mut contents));
    contents
}

/// All lists of a region. There should be one, but what is said in a second one counts as well.
fn read_region(region: &Region<'_>, expected: &Expected<'_>, contents: &mut Contents) {
    let lines = &region.lines;
    let outline = Outline::of(lines);
    let depth = depth_of_items(lines, &outline);
    let is_item =
        |line: &&str| is_entry(line) && depth.is_none_or(|depth| indentation(line) <= depth);
    let mut at = 0;
    while let Some(offset) = lines[at..].iter().position(is_item) {
        at += offset;
        let depth = indentation(lines[at]);
        let end = outline.end_of_block(at);
        let is_complete = region.is_closed || end < lines.len();
        if !is_complete {
            contents.problem.get_or_insert_with(|| {
                "it ends in the middle of an item, or without the last line `end: true`".to_owned()
            });
            break;
        }
        let above = outline.above(at).map(|above| lines[above]);
        if !above.is_some_and(|above| has_value(above, expected)) {
            // The dash becomes a blank, and the entry a block of its own.
            let mut block = vec![lines[at].replacen('-', " ", 1)];
            block.extend(lines[at + 1..end].iter().map(|line| (*line).to_owned()));
            let torn = lines.get(end).and_then(|line| torn(line, depth, expected));
            note(&block, depth, torn, expected, contents);
        }
        at = end;
    }
    let batch = lines.iter().position(|line| line.trim_end() == "batch:");
    if let Some(start) = batch {
        let end = outline.end_of_block(start);
        if region.is_closed || end < lines.len() {
            contents.batch = parse::parse(&lines[start + 1..end].join("\n")).ok();
        }
    }
}

/// How far items are indented: as far as the outermost entry with an id. What is deeper lies within
/// one of them, even where that one cannot be read.
fn depth_of_items(lines: &[&str], outline: &Outline) -> Option<usize> {
    let has_id = |at: usize| {
        let first = lines[at].trim().trim_start_matches('-').trim_start();
        let inner = lines[at].len() - first.len();
        is_id(first) || first.starts_with('{') || outline.has_id(at, inner)
    };
    let entries = (0..lines.len()).filter(|at| is_entry(lines[*at]) && has_id(*at));
    entries.map(|at| indentation(lines[at])).min()
}

/// Whether what lies under a line is part of a text: it names a field, and has a value already.
fn has_value(line: &str, expected: &Expected<'_>) -> bool {
    let line = line.trim_start().trim_start_matches("- ");
    let is_field = |name: &str| name == "id" || expected.is_field(name);
    pair(line).is_some_and(|(name, value)| is_field(name) && !value.is_empty())
}

/// What is wrong with the line behind an entry: it looks as if it belonged to one. Another entry may
/// come, or what begins at the margin: `end: true`, or prose.
fn torn(line: &str, depth: usize, expected: &Expected<'_>) -> Option<String> {
    let at = indentation(line);
    if at == depth && is_entry(line) {
        return None;
    }
    let is_lost = |name: &str| name == "id" || name != "end" && expected.is_field(name);
    if let Some((name, _)) = pair(line).filter(|(name, _)| is_lost(name)) {
        return Some(format!("`{name}` is not indented like the item that it follows"));
    }
    let is_half_an_entry = line.starts_with('-') && !line.starts_with("---") && !is_entry(line);
    (at > 0 || is_half_an_entry)
        .then(|| "a line is not indented like the item that it follows".to_owned())
}

/// Takes down what an entry says.
fn note(
    block: &[String],
    depth: usize,
    torn: Option<String>,
    expected: &Expected<'_>,
    contents: &mut Contents,
) {
    let has_tab = block.iter().any(|line| is_tabbed(line) && indentation(line) <= depth);
    let read = match torn {
        Some(problem) => Err(problem),
        None if has_tab => Err("a tab is no indentation".to_owned()),
        None => parse::parse(&block.join("\n")),
    };
    match read {
        Ok(fields) => match fields.get("id").and_then(id_of) {
            Some(id) => contents.items.push(Said { id, fields: Ok(fields) }),
            None => {
                let is_item = fields.keys().any(|name| expected.is_field(name));
                contents.nameless += usize::from(is_item);
            }
        },
        Err(problem) => {
            // Its id may be readable though it is not.
            let id = block.iter().find_map(|line| pair(line).filter(|(name, _)| *name == "id"));
            if let Some((_, id)) = id {
                let id = id.trim_matches(['"', '\'']).to_ascii_lowercase();
                contents.items.push(Said { id, fields: Err(problem.clone()) });
                contents.problem.get_or_insert(problem);
            }
        }
    }
}
