//! Detection of XML and YAML around a position in a reply that is read as JSON.

use super::super::ReplySpec;

/// Positions where other formats start and end. They are computed once per reply, because a reply can
/// have very many positions to check.
pub(super) struct EnclosingFormats {
    /// Position after the first field name at the start of a line, as in a YAML list.
    yaml: Option<usize>,
    /// Positions after the names of item tags, and whether they are end tags.
    tags: Vec<(usize, bool)>,
}

impl EnclosingFormats {
    /// Scans a reply.
    pub(super) fn new(text: &str, spec: &ReplySpec<'_>) -> EnclosingFormats {
        let is_name = |name: &str| name == "id" || name == "items" || spec.is_field(name);
        let mut next_line = 0;
        let yaml = text.split_inclusive('\n').find_map(|line| {
            let line_start = next_line;
            next_line += line.len();
            let indentation = line.len() - line.trim_start().len();
            let entry = line.trim_start();
            let dash = if entry.starts_with("- ") { 2 } else { 0 };
            let colon = entry[dash..].find(':')?;
            let end = line_start + indentation + dash + colon + 1;
            is_name(entry[dash..dash + colon].trim()).then_some(end)
        });
        let starts = text.match_indices("<item").map(|(at, tag)| (at + tag.len(), false));
        let ends = text.match_indices("</item").map(|(at, tag)| (at + tag.len(), true));
        let mut tags: Vec<(usize, bool)> = starts.chain(ends).collect();
        tags.sort_unstable();
        EnclosingFormats { yaml, tags }
    }

    /// Returns whether a position is within an XML item or after the start of a YAML list.
    pub(super) fn enclose(&self, at: usize) -> bool {
        let count = self.tags.partition_point(|(end, _)| *end <= at);
        let is_in_xml = self.tags[..count].last().is_some_and(|(_, is_end)| !is_end);
        is_in_xml || self.yaml.is_some_and(|end| end <= at)
    }
}
