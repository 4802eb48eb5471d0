//! Well-formedness of XML. Document types are not validated.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Returns why a text is not well-formed XML.
pub(crate) fn problem(text: &str) -> Option<String> {
    check(text).err()
}

fn check(text: &str) -> Result<(), String> {
    let mut reader = Reader::from_str(text);
    let mut depth = 0_usize;
    let mut roots = 0_usize;
    let mut has_doctype = false;
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                check_element(tag)?;
                roots += usize::from(depth == 0);
                depth += usize::from(matches!(event, Event::Start(_)));
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Text(text) if depth == 0 && !text.trim_ascii().is_empty() => {
                return Err("text outside the root element".to_owned());
            }
            Event::CData(_) if depth == 0 => {
                return Err("text outside the root element".to_owned());
            }
            // A document type may declare entities.
            Event::DocType(_) => has_doctype = true,
            Event::GeneralRef(entity) => {
                let name = String::from_utf8_lossy(entity);
                let known =
                    entity.is_char_ref() || ["lt", "gt", "amp", "apos", "quot"].contains(&&*name);
                if depth == 0 || !(known || has_doctype) {
                    return Err(format!("undeclared entity `&{name};`"));
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    match (depth, roots) {
        (0, 1) => Ok(()),
        (0, 0) => Err("no root element".to_owned()),
        (0, _) => Err("more than one root element".to_owned()),
        _ => Err("unclosed element".to_owned()),
    }
}

fn check_element(tag: &BytesStart<'_>) -> Result<(), String> {
    let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
    let is_valid_start =
        name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_' || letter == ':');
    if !is_valid_start {
        return Err(format!("invalid element name `{name}`"));
    }
    for attribute in tag.attributes() {
        attribute.map_err(|error| format!("in <{name}>: {error}"))?;
    }
    Ok(())
}
