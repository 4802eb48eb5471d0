//! Lines that may be YAML, and their prefixes.

/// Maximum indentation of a fence; deeper ones are part of a text.
const MAX_FENCE_INDENTATION: usize = 3;

/// A range of lines that may be YAML.
pub(super) struct Region<'t> {
    pub(super) lines: Vec<&'t str>,
    /// Whether a fence marks the end.
    pub(super) is_closed: bool,
}

/// Returns the lines between fences, or all lines if there are no fences.
pub(super) fn find_regions(text: &str) -> Vec<Region<'_>> {
    let mut regions: Vec<Region<'_>> = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        // Only an opening fence may name a language.
        let is_fence = line.trim_start().starts_with("```")
            && indentation(line) <= MAX_FENCE_INDENTATION
            && (open.is_none() || line.trim().trim_matches('`').is_empty());
        match (is_fence, &mut open) {
            (true, Some(lines)) => {
                regions.push(Region { lines: std::mem::take(lines), is_closed: true });
                open = None;
            }
            (true, None) => open = Some(Vec::new()),
            (false, Some(lines)) => lines.push(line),
            (false, None) => {}
        }
    }
    if let Some(lines) = open {
        regions.push(Region { lines, is_closed: false });
    }
    if regions.is_empty() {
        regions.push(Region { lines: text.lines().collect(), is_closed: false });
    }
    regions
}

/// Returns the number of leading spaces.
pub(super) fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns whether a line has only white space.
pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Returns whether a line starts a list entry.
pub(super) fn is_entry(line: &str) -> bool {
    let line = line.trim();
    line == "-" || line.starts_with("- ")
}

/// Splits a line into the name before the colon and the value after it.
pub(super) fn split_pair(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().split_once(':')?;
    let is_pair = value.is_empty() || value.starts_with([' ', '\t']);
    is_pair.then(|| (name.trim_matches(['"', '\'']), value.trim()))
}

/// Returns whether a line is indented with a tab.
pub(super) fn is_tabbed(line: &str) -> bool {
    line.trim_start_matches(' ').starts_with('\t')
}
