//! Formatting of foreign texts in messages.

/// Characters of a text that a message shows.
const MAX_CHARACTERS: usize = 80;

/// Returns the start of a text, quoted and on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_CHARACTERS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// Returns the text in lower case if case is ignored, else unchanged.
pub(crate) fn fold_case(text: &str, ignore_case: bool) -> std::borrow::Cow<'_, str> {
    if ignore_case { text.to_lowercase().into() } else { text.into() }
}
