//! Finding tags and parsing their attributes.

use super::escape::decode;

/// A start or end tag.
pub(super) struct Tag {
    /// Position of the opening bracket.
    pub(super) start: usize,
    /// Position after the name.
    pub(super) name_end: usize,
    pub(super) is_end: bool,
}

/// Finds the next tag with this name, complete or not.
pub(super) fn find_tag(text: &str, name: &str, from: usize) -> Option<Tag> {
    let mut at = from;
    loop {
        let start = at + text[at..].find('<')?;
        at = start + 1;
        let is_end = text[at..].starts_with('/');
        let name_start = at + usize::from(is_end);
        if leading_name(&text[name_start..]) == name {
            return Some(Tag { start, name_end: name_start + name.len(), is_end });
        }
    }
}

/// Returns the name at the start of a text; empty if there is none.
pub(super) fn leading_name(text: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let length = text.find(|c| !is_name(c)).unwrap_or(text.len());
    &text[..length]
}

/// Returns whether a tag ends here, after its name.
pub(super) fn is_tag_end(text: &str) -> bool {
    text.trim_start().starts_with('>')
}

/// A parsed start tag.
pub(super) struct StartTag {
    pub(super) id: Option<String>,
    /// Whether the tag closes itself.
    pub(super) is_empty: bool,
    /// Length from after the name to after the closing bracket.
    pub(super) length: usize,
}

/// Parses a start tag after its name. Returns `None` for malformed attributes: a quote was lost, and
/// possibly more.
pub(super) fn parse_start_tag(text: &str) -> Option<StartTag> {
    let mut id = None;
    let mut rest = text;
    loop {
        let attribute = rest.trim_start();
        let (is_empty, after) = match attribute.strip_prefix('/') {
            Some(after) => (true, after.strip_prefix('>')),
            None => (false, attribute.strip_prefix('>')),
        };
        if let Some(after) = after {
            return Some(StartTag { id, is_empty, length: text.len() - after.len() });
        }
        let name = leading_name(attribute);
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
