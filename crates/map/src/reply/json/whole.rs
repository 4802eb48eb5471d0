//! Values that can be believed although they stand in the middle of a line, or behind what looks like
//! another form: prose may say anything. Used only where answers can hold objects, where JSON was
//! asked for, and where nothing was damaged before.

use super::super::Expected;
use super::{Reader, key_before};
use serde_json::Value;

/// Prose before an answer is shorter.
const MOST_PROSE: usize = 200;

/// Fewer words could be what is left of a name.
const LEAST_WORDS: usize = 3;

impl Reader<'_> {
    /// Takes what opens here, if it is whole and cannot be a part of something that was lost. If it is
    /// not, it is passed over where it is clear where it ends.
    pub(super) fn take_whole(&mut self, open: usize) -> bool {
        if key_before(self.text, open).is_some() {
            return false;
        }
        let (at, others) = (self.at, std::mem::take(&mut self.contents));
        self.at = open;
        let value = self.value(0, None);
        let found = std::mem::replace(&mut self.contents, others);
        let Ok(value) = value else {
            self.at = at;
            return false;
        };
        let is_believed = found.problem.is_none() && self.is_reply(&value, open);
        if is_believed {
            self.contents.add(found);
        }
        is_believed
    }

    /// Whether it is what was asked for, as a whole: no answer, but a list or a table of them.
    fn is_reply(&self, value: &Value, open: usize) -> bool {
        let is_part =
            |name: &String| name == "items" || name == "batch" || self.expected.is_asked(name);
        let is_named = self.text[..open].trim_end().trim_end_matches(':').ends_with('"');
        value.as_object().is_some_and(|all| !all.is_empty() && all.keys().all(is_part)) && !is_named
    }
}

/// Whether nothing but a few words, a fence or a tag stands before an answer. They must not be what is
/// left of an answer around it: a name of a field, or several lines.
pub(super) fn is_prose(before: &str, expected: &Expected<'_>) -> bool {
    let before = before.trim();
    if before.len() > MOST_PROSE || before.contains('\n') {
        return false;
    }
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_name = |text: &str| text == "id" || text == "value" || expected.is_field(text);
    if let Some(language) = before.strip_prefix("```") {
        return is_word(language);
    }
    if let Some(tag) = before.strip_prefix('<').and_then(|tag| tag.strip_suffix('>')) {
        return is_word(tag) && !is_name(tag);
    }
    let words = before.strip_suffix(':').unwrap_or(before).split(' ');
    words.clone().all(|word| !word.is_empty() && is_word(word) && !is_name(word))
        && words.count() >= LEAST_WORDS
}
