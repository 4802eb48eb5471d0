//! Reader of YAML items: a list whose entries have an `id`.
//!
//! The text is split into list entries by indentation, and each entry is parsed on its own, so that a broken
//! entry does not affect the others. YAML does not show whether a text was cut off. An entry therefore
//! counts only if something follows it, which is why the prompt requests a last line `end: true`; the end of
//! a fence also counts. The following line must not look like a field of the entry that lost its
//! indentation, or like the rest of an entry that lost its start.

mod lines;
mod outline;
mod parse;

use super::{ReplyContents, ReplyItem, ReplySpec, parse_id};
use lines::{Region, find_regions, indentation, is_entry, is_tabbed, split_pair};
use outline::{Outline, is_id};

/// Reads all items of a text.
pub(super) fn read(text: &str, spec: &ReplySpec<'_>) -> ReplyContents {
    let mut contents = ReplyContents::default();
    find_regions(text).iter().for_each(|region| read_region(region, spec, &mut contents));
    contents
}

/// Reads all lists of a region. There should be one, but items of further lists count as well.
fn read_region(region: &Region<'_>, spec: &ReplySpec<'_>, contents: &mut ReplyContents) {
    let lines = &region.lines;
    let outline = Outline::new(lines);
    let depth = item_depth(lines, &outline);
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
        let parent = outline.parent(at).map(|parent| lines[parent]);
        if !parent.is_some_and(|parent| has_field_value(parent, spec)) {
            // Without its dash, the entry is a block of its own.
            let mut block = vec![lines[at].replacen('-', " ", 1)];
            block.extend(lines[at + 1..end].iter().map(|line| (*line).to_owned()));
            let problem = lines.get(end).and_then(|line| following_line_problem(line, depth, spec));
            record(&block, depth, problem, spec, contents);
        }
        at = end;
    }
    let batch = lines.iter().position(|line| line.trim_end() == "batch:");
    if let Some(start) = batch {
        let end = outline.end_of_block(start);
        if region.is_closed || end < lines.len() {
            contents.batch = parse::parse_table(&lines[start + 1..end].join("\n")).ok();
        }
    }
}

/// Returns the indentation of items: that of the outermost entry with an id. Deeper entries are within an
/// item, even if that item cannot be read.
fn item_depth(lines: &[&str], outline: &Outline) -> Option<usize> {
    let has_id = |at: usize| {
        let first = lines[at].trim().trim_start_matches('-').trim_start();
        let inner = lines[at].len() - first.len();
        is_id(first) || first.starts_with('{') || outline.has_id(at, inner)
    };
    let entries = (0..lines.len()).filter(|at| is_entry(lines[*at]) && has_id(*at));
    entries.map(|at| indentation(lines[at])).min()
}

/// Returns whether a line is a field with a value, so that the lines below it are part of a text.
fn has_field_value(line: &str, spec: &ReplySpec<'_>) -> bool {
    let line = line.trim_start().trim_start_matches("- ");
    let is_field = |name: &str| name == "id" || spec.is_field(name);
    split_pair(line).is_some_and(|(name, value)| is_field(name) && !value.is_empty())
}

/// Returns the problem with the line after an entry if it looks like a part of an entry. Another entry may
/// follow, or an unindented line such as `end: true` or prose.
fn following_line_problem(line: &str, depth: usize, spec: &ReplySpec<'_>) -> Option<String> {
    let at = indentation(line);
    if at == depth && is_entry(line) {
        return None;
    }
    let is_lost = |name: &str| name == "id" || name != "end" && spec.is_field(name);
    if let Some((name, _)) = split_pair(line).filter(|(name, _)| is_lost(name)) {
        return Some(format!("`{name}` is not indented like the item that it follows"));
    }
    let is_partial_entry = line.starts_with('-') && !line.starts_with("---") && !is_entry(line);
    (at > 0 || is_partial_entry)
        .then(|| "a line is not indented like the item that it follows".to_owned())
}

/// Records an entry.
fn record(
    block: &[String],
    depth: usize,
    problem: Option<String>,
    spec: &ReplySpec<'_>,
    contents: &mut ReplyContents,
) {
    let has_tab = block.iter().any(|line| is_tabbed(line) && indentation(line) <= depth);
    let parsed = match problem {
        Some(problem) => Err(problem),
        None if has_tab => Err("a tab is no indentation".to_owned()),
        None => parse::parse_table(&block.join("\n")),
    };
    match parsed {
        Ok(fields) => match fields.get("id").and_then(parse_id) {
            Some(id) => contents.items.push(ReplyItem { id, fields: Ok(fields) }),
            None => {
                let is_item = fields.keys().any(|name| spec.is_field(name));
                contents.nameless += usize::from(is_item);
            }
        },
        Err(problem) => {
            // The id may be readable even if the entry is not.
            let id =
                block.iter().find_map(|line| split_pair(line).filter(|(name, _)| *name == "id"));
            if let Some((_, id)) = id {
                let id = id.trim_matches(['"', '\'']).to_ascii_lowercase();
                contents.items.push(ReplyItem { id, fields: Err(problem.clone()) });
                contents.problem.get_or_insert(problem);
            }
        }
    }
}
