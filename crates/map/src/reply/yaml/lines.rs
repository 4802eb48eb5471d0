//! Lines that may be YAML, and what their beginnings say.

/// Fences stand at the margin; deeper ones are part of a text.
const MOST_BEFORE_A_FENCE: usize = 3;

/// Lines of a text that may be YAML.
pub(super) struct Region<'t> {
    pub(super) lines: Vec<&'t str>,
    /// A fence says that it ends here.
    pub(super) is_closed: bool,
}

/// What stands between fences, else everything.
pub(super) fn regions(text: &str) -> Vec<Region<'_>> {
    let mut regions: Vec<Region<'_>> = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        // What a fence says of its contents stands where it opens, and nothing where it closes.
        let is_fence = line.trim_start().starts_with("```")
            && indentation(line) <= MOST_BEFORE_A_FENCE
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

/// How many blanks a line begins with.
pub(super) fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Whether a line begins an entry of a list.
pub(super) fn is_entry(line: &str) -> bool {
    let line = line.trim();
    line == "-" || line.starts_with("- ")
}

/// The name before a colon, and what stands behind it.
pub(super) fn pair(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().split_once(':')?;
    let is_pair = value.is_empty() || value.starts_with([' ', '\t']);
    is_pair.then(|| (name.trim_matches(['"', '\'']), value.trim()))
}

/// Whether a line is indented with a tab.
pub(super) fn is_tabbed(line: &str) -> bool {
    line.trim_start_matches(' ').starts_with('\t')
}
