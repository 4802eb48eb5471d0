//! The elements of an item: one after the other, and nothing between them.

use super::escape::CDATA;
use super::tag::{closes, name_of, next, start};
use super::value::parts;
use crate::task::{Field, FieldType};
use std::collections::HashSet;

/// An element, as it is written.
pub(super) struct Element<'t> {
    pub(super) name: &'t str,
    pub(super) body: &'t str,
}

/// All elements of a text.
///
/// # Errors
///
/// When anything else stands there, or an element has no end of its own. What may have been lost
/// then is the end of an item, so none of it can be believed.
pub(super) fn elements<'t>(text: &'t str, fields: &[Field]) -> Result<Vec<Element<'t>>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let outside = || "an <item> has a text outside of its fields".to_owned();
        let tag = rest.strip_prefix('<').ok_or_else(outside)?;
        let name = name_of(tag);
        if name.is_empty() {
            return Err(outside());
        }
        let no_end = || format!("`{name}` has no end");
        let end = tag.find(['<', '>']).filter(|end| tag[*end..].starts_with('>'));
        let attributes = end.map(|end| &tag[name.len()..end]).ok_or_else(no_end)?;
        if !attributes.is_empty()
            && !attributes.starts_with(|c: char| c.is_whitespace() || c == '/')
        {
            return Err(outside());
        }
        let inner = &tag[name.len() + attributes.len() + 1..];
        let (body, after) = match attributes.ends_with('/') {
            true => ("", inner),
            false => body(inner, name).ok_or_else(no_end)?,
        };
        if swallows(name, body, fields) {
            return Err(no_end());
        }
        if has_half_a_tag(body) {
            return Err(format!("`{name}` has a `<` that should be `&lt;`"));
        }
        found.push(Element { name, body });
        rest = after.trim_start();
    }
    Ok(found)
}

/// Everything up to the end tag of that name, and what comes behind it.
fn body<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    // What quotes itself may quote the end tag, too.
    let from = match text.trim_start().strip_prefix(CDATA) {
        Some(data) => text.len() - data.len() + data.find("]]>")?,
        None => 0,
    };
    let mut at = from;
    loop {
        let tag = next(text, name, at)?;
        at = tag.behind_name;
        if tag.is_end && closes(&text[at..]) {
            let behind = text[at..].find('>').map(|offset| at + offset + 1)?;
            return Some((&text[..tag.start], &text[behind..]));
        }
    }
}

/// Whether another field begins or ends within this one. Also where it is quoted as a whole, because
/// the end of the quotation may have been another's.
fn swallows(name: &str, body: &str, fields: &[Field]) -> bool {
    if let Some(data) = body.trim().strip_prefix(CDATA)
        && (data.find("]]>") != data.len().checked_sub(3) || data.contains(CDATA))
    {
        return true;
    }
    let kind = fields.iter().find(|field| field.name == name).map(|field| field.kind);
    let is_whole = matches!(kind, Some(FieldType::Array | FieldType::Object))
        && parts(body).is_some_and(|parts| parts.iter().all(|part| part.name != name));
    let has_lists = fields.iter().any(|field| field.kind == FieldType::Array);
    let is_field = |tag: &str| {
        let is_form = tag == name || tag == "id" || tag == "batch" || tag == "value" && has_lists;
        is_form || fields.iter().any(|field| field.name == tag)
    };
    let mut tags = body.split('<').skip(1);
    !is_whole && tags.any(|tag| is_field(name_of(tag.strip_prefix('/').unwrap_or(tag))))
}

/// Whether a text has a part of something in tags, of which nobody knows what it was: half a tag, or
/// an end without a beginning. What is clearly no tag (`a < b`, `<5`, `<=`) is part of the text, and
/// so are tags of no meaning here.
fn has_half_a_tag(body: &str) -> bool {
    if body.trim().starts_with(CDATA) {
        return false;
    }
    let mut names = HashSet::new();
    let is_half = |(at, _): (usize, &str)| {
        let tag = &body[at + 1..];
        let (is_end, named) = tag.strip_prefix('/').map_or((false, tag), |named| (true, named));
        let name = name_of(named);
        let is_first = names.insert(name);
        if tag.starts_with(|c: char| c.is_ascii_digit() || " =".contains(c)) {
            return false;
        }
        let behind = &named[name.len()..];
        !name.starts_with(|c: char| c.is_ascii_alphabetic())
            || match is_end {
                true => !closes(behind) || is_first,
                // With an id, it may be what is left of an item's own.
                false => start(behind).is_none_or(|start| start.id.is_some()),
            }
    };
    body.match_indices('<').any(is_half)
}
