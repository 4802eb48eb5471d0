//! Nesting of lines by indentation, computed for all lines at once. Searching back and ahead from every
//! entry would take quadratic time.

use super::lines::{indentation, is_blank, is_tabbed, split_pair};
use std::collections::HashMap;

/// Block ends, parents and id lines of a text.
pub(super) struct Outline {
    ends: Vec<usize>,
    parents: Vec<Option<usize>>,
    /// Lines with an id, by indentation.
    ids: HashMap<usize, Vec<usize>>,
}

impl Outline {
    /// Computes the outline of lines.
    pub(super) fn new(lines: &[&str]) -> Outline {
        let mut ids: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut parents = vec![None; lines.len()];
        let mut open: Vec<usize> = Vec::new();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| !is_blank(line)) {
            let depth = indentation(line);
            open.truncate(open.partition_point(|other| indentation(lines[*other]) < depth));
            parents[at] = open.last().copied();
            open.push(at);
            if is_id(line) {
                ids.entry(depth).or_default().push(at);
            }
        }
        let mut ends = vec![lines.len(); lines.len()];
        // Later lines that can end a block, nearest last. Each is indented more than the one before it.
        let mut ahead: Vec<usize> = Vec::new();
        for (at, line) in lines.iter().enumerate().rev() {
            let depth = indentation(line);
            let count = ahead.partition_point(|other| indentation(lines[*other]) <= depth);
            ends[at] = ahead[..count].last().copied().unwrap_or(lines.len());
            if !is_blank(line) && !is_tabbed(line) {
                ahead.truncate(count);
                ahead.push(at);
            }
        }
        Outline { ends, parents, ids }
    }

    /// Returns the first line after a block: a line that is neither blank nor deeper than the block's first
    /// line. Lines indented with a tab belong to the block, although a tab is no valid indentation.
    pub(super) fn end_of_block(&self, start: usize) -> usize {
        self.ends[start]
    }

    /// Returns the last line before this one with less indentation.
    pub(super) fn parent(&self, at: usize) -> Option<usize> {
        self.parents[at]
    }

    /// Returns whether a block has a line with an id at this indentation.
    pub(super) fn has_id(&self, start: usize, depth: usize) -> bool {
        let ids = self.ids.get(&depth).map_or(&[][..], Vec::as_slice);
        let next = ids.partition_point(|at| *at <= start);
        ids.get(next).is_some_and(|at| *at < self.ends[start])
    }
}

/// Returns whether a line has an id.
pub(super) fn is_id(line: &str) -> bool {
    split_pair(line).is_some_and(|(name, _)| name == "id")
}
