//! Reasoning text before an answer. Drafts and quotations in it look like answers, so it is removed first.

/// Names of the tags around reasoning text.
const TAGS: [&str; 2] = ["think", "thinking"];

/// Returns the reply without the reasoning text at its start. Servers often omit the start tag.
///
/// # Errors
///
/// Fails if the reasoning does not end: then all items in it are drafts.
pub(super) fn strip(text: &str) -> Result<&str, String> {
    // ASCII lower case keeps the length, so positions are valid in both texts.
    let lower = text.to_ascii_lowercase();
    let start = text.len() - text.trim_start().len();
    let is_start = |tag: &&str| {
        let after_name = lower[start..].strip_prefix('<').and_then(|rest| rest.strip_prefix(*tag));
        after_name.is_some_and(|rest| rest.starts_with('>'))
    };
    let mut answer_start = 0;
    if TAGS.iter().any(is_start) {
        let end = next_end_tag(&lower, start);
        answer_start = end.map(|(_, after)| after).ok_or("it ends while thinking")?;
    }
    let (mut at, mut line) = (answer_start, answer_start);
    let mut open = OpenBrackets::default();
    while let Some((end, after)) = next_end_tag(&lower, at) {
        let skipped = &lower[at..end];
        open.count(skipped);
        line = skipped.rfind('\n').map_or(line, |offset| at + offset + 1);
        at = after;
        // In an indented line or a list entry, the tag is part of a YAML string.
        if open.is_balanced() && !lower[line..].starts_with([' ', '\t', '-']) {
            (answer_start, line, open) = (after, after, OpenBrackets::default());
        }
    }
    Ok(&text[answer_start..])
}

/// Returns the start and end of the next end tag.
fn next_end_tag(lower: &str, from: usize) -> Option<(usize, usize)> {
    lower[from..].match_indices("</think").find_map(|(at, _)| {
        let end = |tag: &&str| lower[from + at + 2..].strip_prefix(*tag)?.strip_prefix('>');
        let rest = TAGS.iter().find_map(end)?;
        Some((from + at, lower.len() - rest.len()))
    })
}

/// Numbers of brackets and item tags that are open. An end tag within them is part of an answer.
#[derive(Default)]
struct OpenBrackets {
    brackets: isize,
    items: isize,
}

impl OpenBrackets {
    fn count(&mut self, text: &str) {
        let brackets = |marks: [char; 2]| text.matches(marks).count().cast_signed();
        self.brackets += brackets(['{', '[']) - brackets(['}', ']']);
        let tags = |tag: &str| text.matches(tag).count().cast_signed();
        self.items += tags("<item") - tags("</item");
    }

    fn is_balanced(&self) -> bool {
        self.brackets <= 0 && self.items <= 0
    }
}
