//! How lines lie within each other, found for all of them at once: a text may have so many entries
//! that looking back and ahead from each of them would take for ever.

use super::lines::{indentation, is_blank, is_tabbed, pair};
use std::collections::HashMap;

pub(super) struct Outline {
    ends: Vec<usize>,
    above: Vec<Option<usize>>,
    /// Lines that give an id, by their indentation.
    ids: HashMap<usize, Vec<usize>>,
}

impl Outline {
    pub(super) fn of(lines: &[&str]) -> Outline {
        let mut ids: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut above = vec![None; lines.len()];
        let mut open: Vec<usize> = Vec::new();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| !is_blank(line)) {
            let depth = indentation(line);
            open.truncate(open.partition_point(|other| indentation(lines[*other]) < depth));
            above[at] = open.last().copied();
            open.push(at);
            if is_id(line) {
                ids.entry(depth).or_default().push(at);
            }
        }
        let mut ends = vec![lines.len(); lines.len()];
        // Those which can end a block, the next one last; each is less deep than the one after it.
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
        Outline { ends, above, ids }
    }

    /// The first line behind the one that begins a block that is not part of it: it is not blank, and
    /// not deeper. A tab is no indentation, but what it begins was meant as part of something.
    pub(super) fn end_of_block(&self, start: usize) -> usize {
        self.ends[start]
    }

    /// The last line before this one that is less deep.
    pub(super) fn above(&self, at: usize) -> Option<usize> {
        self.above[at]
    }

    /// Whether a line within a block gives an id, at that depth.
    pub(super) fn has_id(&self, start: usize, depth: usize) -> bool {
        let ids = self.ids.get(&depth).map_or(&[][..], Vec::as_slice);
        let next = ids.partition_point(|at| *at <= start);
        ids.get(next).is_some_and(|at| *at < self.ends[start])
    }
}

/// Whether a line gives an id.
pub(super) fn is_id(line: &str) -> bool {
    pair(line).is_some_and(|(name, _)| name == "id")
}
