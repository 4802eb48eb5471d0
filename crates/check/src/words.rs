//! Texts of others, fit to be shown in a message.

/// Enough of a text to recognise it, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text.chars().take(MOST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

pub(crate) fn same_case(text: &str, ignore_case: bool) -> std::borrow::Cow<'_, str> {
    if ignore_case { text.to_lowercase().into() } else { text.into() }
}
