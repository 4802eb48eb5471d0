//! What a model thinks before it answers. Drafts and quotations in it look like answers and are none.

/// What thinking is put into, in tags.
const TAGS: [&str; 2] = ["think", "thinking"];

/// The reply without the thinking before it. Servers often leave out the tag that begins it.
///
/// # Errors
///
/// When it does not come to an end: then there is no answer, whatever the drafts say.
pub(super) fn behind(text: &str) -> Result<&str, String> {
    // Of the same length, so that places are the same, too.
    let lower = text.to_ascii_lowercase();
    let start = text.len() - text.trim_start().len();
    let begins = |tag: &&str| {
        let named = lower[start..].strip_prefix('<').and_then(|rest| rest.strip_prefix(*tag));
        named.is_some_and(|rest| rest.starts_with('>'))
    };
    let mut behind = 0;
    if TAGS.iter().any(begins) {
        let end = next_end(&lower, start);
        behind = end.map(|(_, behind)| behind).ok_or("it ends while thinking")?;
    }
    let (mut at, mut line) = (behind, behind);
    let mut open = Open::default();
    while let Some((end, after)) = next_end(&lower, at) {
        let passed = &lower[at..end];
        open.pass(passed);
        line = passed.rfind('\n').map_or(line, |offset| at + offset + 1);
        at = after;
        // What is indented, or an entry of a list, is part of a text in YAML.
        if open.is_nothing() && !lower[line..].starts_with([' ', '\t', '-']) {
            (behind, line, open) = (after, after, Open::default());
        }
    }
    Ok(&text[behind..])
}

/// The next end tag: where it begins and where it ends.
fn next_end(lower: &str, from: usize) -> Option<(usize, usize)> {
    lower[from..].match_indices("</think").find_map(|(at, _)| {
        let end = |tag: &&str| lower[from + at + 2..].strip_prefix(*tag)?.strip_prefix('>');
        let rest = TAGS.iter().find_map(end)?;
        Some((from + at, lower.len() - rest.len()))
    })
}

/// What was begun and has not ended: a tag within it is part of an answer's text.
#[derive(Default)]
struct Open {
    brackets: isize,
    items: isize,
}

impl Open {
    fn pass(&mut self, text: &str) {
        let count = |marks: [char; 2]| text.matches(marks).count().cast_signed();
        self.brackets += count(['{', '[']) - count(['}', ']']);
        let tags = |tag: &str| text.matches(tag).count().cast_signed();
        self.items += tags("<item") - tags("</item");
    }

    fn is_nothing(&self) -> bool {
        self.brackets <= 0 && self.items <= 0
    }
}
