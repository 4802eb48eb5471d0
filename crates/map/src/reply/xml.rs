//! Reader of XML items, `<item id="…"><field>…</field></item>`, anywhere in a reply.
//!
//! Models write XML that standard parsers reject: bare `&` and `<` in texts, prose around it, and replies
//! that are cut off. This reader handles the flat structure of items. It is strict where answers could get
//! mixed: an item extends from its start tag to its end tag without another item tag in between, and
//! contains only elements. Texts that quote such tags have to escape them.

mod element;
mod escape;
mod tag;
mod value;

use super::{ReplyContents, ReplyItem, ReplySpec, parse_id};
use crate::task::Field;
use serde_json::{Map, Value};

/// Reads all items of a text.
pub(super) fn read(text: &str, spec: &ReplySpec<'_>) -> ReplyContents {
    let mut contents = ReplyContents::default();
    let (mut at, mut first) = (0, None);
    while let Some(found) = tag::find_tag(text, "item", at) {
        first.get_or_insert(found.start);
        at = found.name_end;
        if found.is_end {
            continue;
        }
        let Some(start) = tag::parse_start_tag(&text[at..]) else {
            let problem = || "the start of an <item> cannot be read".to_owned();
            contents.problem.get_or_insert_with(problem);
            continue;
        };
        at += start.length;
        let fields = match start.is_empty {
            true => Ok(Map::new()),
            false => parse_item(text, at, &spec.task.output),
        };
        record(start.id, fields, &mut contents);
    }
    // Within an item, `batch` would be a field.
    let outside = [&text[..first.unwrap_or(text.len())], &text[at..]];
    contents.batch = outside.into_iter().find_map(|text| parse_batch(text, &spec.task.batch));
    contents
}

/// Parses the fields of the item whose start tag ends at `inner`.
fn parse_item(text: &str, inner: usize, fields: &[Field]) -> Result<Map<String, Value>, String> {
    match tag::find_tag(text, "item", inner) {
        Some(end) if end.is_end && tag::is_tag_end(&text[end.name_end..]) => {
            value::parse_fields(&element::parse_elements(&text[inner..end.start], fields)?, fields)
        }
        _ => Err("an <item> has no end".to_owned()),
    }
}

/// Records an item. Its id may be an attribute or an element.
fn record(
    id: Option<String>,
    fields: Result<Map<String, Value>, String>,
    contents: &mut ReplyContents,
) {
    let mut fields = fields;
    let element = fields.as_mut().ok().and_then(|fields| fields.remove("id"));
    let attribute = id.map(Value::String);
    let id = attribute.as_ref().or(element.as_ref()).and_then(parse_id);
    if let (Some(attribute), Some(element)) = (&attribute, &element)
        && parse_id(attribute) != parse_id(element)
    {
        fields = Err("an <item> has two ids".to_owned());
    }
    if let Err(problem) = &fields {
        contents.problem.get_or_insert_with(|| problem.clone());
    }
    match id {
        Some(id) => contents.items.push(ReplyItem { id, fields }),
        None => contents.nameless += usize::from(fields.is_ok()),
    }
}

/// Parses the batch values.
fn parse_batch(text: &str, fields: &[Field]) -> Option<Map<String, Value>> {
    let open = tag::find_tag(text, "batch", 0).filter(|tag| !tag.is_end && !fields.is_empty())?;
    let inner = open.name_end + tag::parse_start_tag(&text[open.name_end..])?.length;
    let end = tag::find_tag(text, "batch", inner).filter(|tag| tag.is_end)?;
    value::parse_fields(&element::parse_elements(&text[inner..end.start], fields).ok()?, fields)
        .ok()
}
