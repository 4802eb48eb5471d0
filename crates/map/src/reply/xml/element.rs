//! The elements of an item, with nothing between them.

use super::escape::CDATA;
use super::tag::{find_tag, is_tag_end, leading_name, parse_start_tag};
use super::value::flat_elements;
use crate::task::{Field, FieldType};
use std::collections::HashSet;

/// An element and its unparsed body.
pub(super) struct Element<'t> {
    pub(super) name: &'t str,
    pub(super) body: &'t str,
}

/// Splits the body of an item into elements.
///
/// # Errors
///
/// Fails if there is anything between elements, or if an element has no end. The end of an item may have
/// been lost then, so no element can be trusted.
pub(super) fn parse_elements<'t>(
    text: &'t str,
    fields: &[Field],
) -> Result<Vec<Element<'t>>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let outside = || "an <item> has a text outside of its fields".to_owned();
        let tag = rest.strip_prefix('<').ok_or_else(outside)?;
        let name = leading_name(tag);
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
            false => split_body(inner, name).ok_or_else(no_end)?,
        };
        if contains_field_tag(name, body, fields) {
            return Err(no_end());
        }
        if has_partial_tag(body) {
            return Err(format!("`{name}` has a `<` that should be `&lt;`"));
        }
        found.push(Element { name, body });
        rest = after.trim_start();
    }
    Ok(found)
}

/// Splits a text at the end tag with this name.
fn split_body<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    // A CDATA section may contain the end tag.
    let from = match text.trim_start().strip_prefix(CDATA) {
        Some(data) => text.len() - data.len() + data.find("]]>")?,
        None => 0,
    };
    let mut at = from;
    loop {
        let tag = find_tag(text, name, at)?;
        at = tag.name_end;
        if tag.is_end && is_tag_end(&text[at..]) {
            let after = text[at..].find('>').map(|offset| at + offset + 1)?;
            return Some((&text[..tag.start], &text[after..]));
        }
    }
}

/// Returns whether the tag of another field is within this one. This includes CDATA sections with irregular
/// ends, because such an end may have been the end of another section.
fn contains_field_tag(name: &str, body: &str, fields: &[Field]) -> bool {
    if let Some(data) = body.trim().strip_prefix(CDATA)
        && (data.find("]]>") != data.len().checked_sub(3) || data.contains(CDATA))
    {
        return true;
    }
    let kind = fields.iter().find(|field| field.name == name).map(|field| field.kind);
    let is_intact = matches!(kind, Some(FieldType::Array | FieldType::Object))
        && flat_elements(body).is_some_and(|inner| inner.iter().all(|part| part.name != name));
    let has_arrays = fields.iter().any(|field| field.kind == FieldType::Array);
    let is_field = |tag: &str| {
        let is_reserved =
            tag == name || tag == "id" || tag == "batch" || tag == "value" && has_arrays;
        is_reserved || fields.iter().any(|field| field.name == tag)
    };
    let mut tags = body.split('<').skip(1);
    !is_intact && tags.any(|tag| is_field(leading_name(tag.strip_prefix('/').unwrap_or(tag))))
}

/// Returns whether a text has the rest of a damaged element: a partial tag, or an end tag without a start
/// tag. Text that is clearly no tag (`a < b`, `<5`, `<=`) and tags without a meaning here are allowed.
fn has_partial_tag(body: &str) -> bool {
    if body.trim().starts_with(CDATA) {
        return false;
    }
    let mut names = HashSet::new();
    let is_partial = |(at, _): (usize, &str)| {
        let tag = &body[at + 1..];
        let (is_end, named) = tag.strip_prefix('/').map_or((false, tag), |named| (true, named));
        let name = leading_name(named);
        let is_first = names.insert(name);
        if tag.starts_with(|c: char| c.is_ascii_digit() || " =".contains(c)) {
            return false;
        }
        let after = &named[name.len()..];
        !name.starts_with(|c: char| c.is_ascii_alphabetic())
            || match is_end {
                true => !is_tag_end(after) || is_first,
                // A tag with an id may be the rest of an item's start tag.
                false => parse_start_tag(after).is_none_or(|start| start.id.is_some()),
            }
    };
    body.match_indices('<').any(is_partial)
}
