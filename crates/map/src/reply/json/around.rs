//! What stands around a place in a text that may be written in another form than JSON.

use super::super::Expected;

/// Where another form begins and ends. It is looked for once, because a text can have very many
/// places to ask about.
pub(super) struct Around {
    /// Behind the first name at the beginning of a line, as in a list in YAML.
    yaml: Option<usize>,
    /// Where tags of items begin, and whether they are end tags.
    tags: Vec<(usize, bool)>,
}

impl Around {
    pub(super) fn of(text: &str, expected: &Expected<'_>) -> Around {
        let is_name = |name: &str| name == "id" || name == "items" || expected.is_field(name);
        let mut start = 0;
        let yaml = text.split_inclusive('\n').find_map(|line| {
            let begins = start;
            start += line.len();
            let blanks = line.len() - line.trim_start().len();
            let named = line.trim_start();
            let dash = if named.starts_with("- ") { 2 } else { 0 };
            let colon = named[dash..].find(':')?;
            is_name(named[dash..dash + colon].trim()).then_some(begins + blanks + dash + colon + 1)
        });
        let starts = text.match_indices("<item").map(|(at, tag)| (at + tag.len(), false));
        let ends = text.match_indices("</item").map(|(at, tag)| (at + tag.len(), true));
        let mut tags: Vec<(usize, bool)> = starts.chain(ends).collect();
        tags.sort_unstable();
        Around { yaml, tags }
    }

    /// Whether a place lies within an item in XML, or behind the beginning of a list in YAML.
    pub(super) fn is_another_form(&self, at: usize) -> bool {
        let before = self.tags.partition_point(|(behind, _)| *behind <= at);
        let is_in_xml = self.tags[..before].last().is_some_and(|(_, is_end)| !is_end);
        is_in_xml || self.yaml.is_some_and(|behind| behind <= at)
    }
}
