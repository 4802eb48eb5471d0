//! Items in XML: `<item id="…"><field>…</field></item>`, wherever they stand in a text.
//!
//! A reader of our own for this flat shape, because models write XML that no parser accepts: bare
//! `&` and `<` in texts, prose around it, and a reply that is cut. It is strict where answers could
//! get mixed: an item reaches from its start tag to its end tag with no other tag of an item between
//! them, and holds elements and nothing else. Texts that quote such tags have to escape them.

mod element;
mod escape;
mod tag;
mod value;

use super::{Contents, Expected, Said, id_of};
use crate::task::Field;
use serde_json::{Map, Value};

pub(super) fn read(text: &str, expected: &Expected<'_>) -> Contents {
    let mut contents = Contents::default();
    let (mut at, mut first) = (0, None);
    while let Some(found) = tag::next(text, "item", at) {
        first.get_or_insert(found.start);
        at = found.behind_name;
        if found.is_end {
            continue;
        }
        let Some(start) = tag::start(&text[at..]) else {
            let problem = || "the start of an <item> cannot be read".to_owned();
            contents.problem.get_or_insert_with(problem);
            continue;
        };
        at += start.length;
        let fields = match start.is_empty {
            true => Ok(Map::new()),
            false => item(text, at, &expected.task.output),
        };
        note(start.id, fields, &mut contents);
    }
    // Not within an item, where it would be a field.
    let outside = [&text[..first.unwrap_or(text.len())], &text[at..]];
    contents.batch = outside.into_iter().find_map(|text| batch(text, &expected.task.batch));
    contents
}

/// The fields of the item whose start tag ends there.
fn item(text: &str, inner: usize, fields: &[Field]) -> Result<Map<String, Value>, String> {
    match tag::next(text, "item", inner) {
        Some(end) if end.is_end && tag::closes(&text[end.behind_name..]) => {
            value::fields(&element::elements(&text[inner..end.start], fields)?, fields)
        }
        _ => Err("an <item> has no end".to_owned()),
    }
}

/// Takes down what an item says. Its id may stand in its tag or in an element.
fn note(id: Option<String>, fields: Result<Map<String, Value>, String>, contents: &mut Contents) {
    let mut fields = fields;
    let inner = fields.as_mut().ok().and_then(|fields| fields.remove("id"));
    let (outer, inner) = (id.map(Value::String), inner);
    let id = outer.as_ref().or(inner.as_ref()).and_then(id_of);
    if let (Some(outer), Some(inner)) = (&outer, &inner)
        && id_of(outer) != id_of(inner)
    {
        fields = Err("an <item> has two ids".to_owned());
    }
    if let Err(problem) = &fields {
        contents.problem.get_or_insert_with(|| problem.clone());
    }
    match id {
        Some(id) => contents.items.push(Said { id, fields }),
        None => contents.nameless += usize::from(fields.is_ok()),
    }
}

fn batch(text: &str, fields: &[Field]) -> Option<Map<String, Value>> {
    let open = tag::next(text, "batch", 0).filter(|tag| !tag.is_end && !fields.is_empty())?;
    let inner = open.behind_name + tag::start(&text[open.behind_name..])?.length;
    let end = tag::next(text, "batch", inner).filter(|tag| tag.is_end)?;
    value::fields(&element::elements(&text[inner..end.start], fields).ok()?, fields).ok()
}
