//! Recognition of prose before a JSON value.

use super::super::ReplySpec;

/// Maximum length of prose before an answer.
const MAX_PROSE_BYTES: usize = 200;

/// Minimum number of words of prose. Fewer could be the rest of a field name.
const MIN_WORDS: usize = 3;

/// Returns whether only a few words, a fence or a tag precede a value. They must not be the rest of an
/// enclosing answer: several lines, or the name of a field.
pub(super) fn is_prose(before: &str, spec: &ReplySpec<'_>) -> bool {
    let before = before.trim();
    if before.len() > MAX_PROSE_BYTES || before.contains('\n') {
        return false;
    }
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_name = |text: &str| text == "id" || text == "value" || spec.is_field(text);
    if let Some(language) = before.strip_prefix("```") {
        return is_word(language);
    }
    if let Some(tag) = before.strip_prefix('<').and_then(|tag| tag.strip_suffix('>')) {
        return is_word(tag) && !is_name(tag);
    }
    let words = before.strip_suffix(':').unwrap_or(before).split(' ');
    words.clone().all(|word| !word.is_empty() && is_word(word) && !is_name(word))
        && words.count() >= MIN_WORDS
}
