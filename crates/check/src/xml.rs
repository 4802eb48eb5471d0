//! Is it XML? Well-formed, that is; document types are not validated.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Why a text is not well-formed XML.
pub(crate) fn problem(text: &str) -> Option<String> {
    check(text).err()
}

fn check(text: &str) -> Result<(), String> {
    let mut reader = Reader::from_str(text);
    let mut depth = 0_usize;
    let mut roots = 0_usize;
    let mut declares = false;
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                element(tag)?;
                roots += usize::from(depth == 0);
                depth += usize::from(matches!(event, Event::Start(_)));
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Text(text) if depth == 0 && !text.trim_ascii().is_empty() => {
                return Err("there is text outside the root element".to_owned());
            }
            Event::CData(_) if depth == 0 => {
                return Err("there is text outside the root element".to_owned());
            }
            // A document type may declare entities of its own.
            Event::DocType(_) => declares = true,
            Event::GeneralRef(entity) => {
                let name = String::from_utf8_lossy(entity);
                let known =
                    entity.is_char_ref() || ["lt", "gt", "amp", "apos", "quot"].contains(&&*name);
                if depth == 0 || !(known || declares) {
                    return Err(format!("the entity `&{name};` is not declared"));
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    match (depth, roots) {
        (0, 1) => Ok(()),
        (0, 0) => Err("there is no root element".to_owned()),
        (0, _) => Err("there is more than one root element".to_owned()),
        _ => Err("an element is not closed".to_owned()),
    }
}

fn element(tag: &BytesStart<'_>) -> Result<(), String> {
    let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
    let begins_well =
        name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_' || letter == ':');
    if !begins_well {
        return Err(format!("`{name}` is no name of an element"));
    }
    for attribute in tag.attributes() {
        attribute.map_err(|error| format!("in <{name}>: {error}"))?;
    }
    Ok(())
}
