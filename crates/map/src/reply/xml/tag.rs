//! Tags: where they stand, and what stands in them.

use super::escape::decode;

/// A start or end tag.
pub(super) struct Tag {
    /// Where its bracket stands.
    pub(super) start: usize,
    pub(super) behind_name: usize,
    pub(super) is_end: bool,
}

/// The next tag of that name from there on, whole or not.
pub(super) fn next(text: &str, name: &str, from: usize) -> Option<Tag> {
    let mut at = from;
    loop {
        let start = at + text[at..].find('<')?;
        at = start + 1;
        let is_end = text[at..].starts_with('/');
        let named = at + usize::from(is_end);
        if name_of(&text[named..]) == name {
            return Some(Tag { start, behind_name: named + name.len(), is_end });
        }
    }
}

/// The name at the beginning of a text; empty when there is none.
pub(super) fn name_of(text: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let length = text.find(|c| !is_name(c)).unwrap_or(text.len());
    &text[..length]
}

/// Whether an end tag ends here, behind its name.
pub(super) fn closes(text: &str) -> bool {
    text.trim_start().starts_with('>')
}

/// What stands in a start tag.
pub(super) struct Start {
    pub(super) id: Option<String>,
    /// It is its own end tag.
    pub(super) is_empty: bool,
    /// From its name to behind its bracket.
    pub(super) length: usize,
}

/// Reads a start tag behind its name. Attributes that do not end where they should have lost a
/// quote, and then nobody knows what else.
pub(super) fn start(text: &str) -> Option<Start> {
    let mut id = None;
    let mut rest = text;
    loop {
        let attribute = rest.trim_start();
        let (is_empty, after) = match attribute.strip_prefix('/') {
            Some(after) => (true, after.strip_prefix('>')),
            None => (false, attribute.strip_prefix('>')),
        };
        if let Some(after) = after {
            return Some(Start { id, is_empty, length: text.len() - after.len() });
        }
        let name = name_of(attribute);
        if name.is_empty() || attribute.len() == rest.len() {
            return None;
        }
        let value = attribute[name.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| ['"', '\''].contains(c))?;
        let (value, after) = value[1..].split_once(quote)?;
        if value.contains(['<', '>']) || name == "id" && id.is_some() {
            return None;
        }
        if name == "id" {
            id = Some(decode(value));
        }
        rest = after;
    }
}
