//! Compact storage of the ids of all cases.
//!
//! Several parts of a run share the ids of a suite, which may have a very large number of cases.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Ids in the suite's order, searchable by text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseIds {
    text: String,
    /// End of each id in `text`.
    ends: Vec<usize>,
    /// Indexes of the ids, sorted by text and then by index.
    sorted: Vec<u32>,
}

impl CaseIds {
    /// Returns the number of ids.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the id of a case by index.
    pub fn get(&self, number: usize) -> Option<&str> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start..end)
    }

    /// Returns all ids, in the suite's order.
    pub fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// Returns the index of a case by id.
    pub fn position(&self, id: &str) -> Option<usize> {
        let found = self.sorted.binary_search_by(|number| self.at(*number).cmp(id)).ok()?;
        Some(self.sorted[found] as usize)
    }

    /// Returns pairs of cases that share an id, the earlier one first.
    pub fn repeated(&self) -> impl Iterator<Item = (usize, usize)> {
        self.sorted
            .windows(2)
            .filter(|pair| self.at(pair[0]) == self.at(pair[1]))
            .map(|pair| (pair[0] as usize, pair[1] as usize))
    }

    fn at(&self, number: u32) -> &str {
        self.get(number as usize).unwrap_or_default()
    }
}

impl<S: AsRef<str>> FromIterator<S> for CaseIds {
    fn from_iter<I: IntoIterator<Item = S>>(ids: I) -> CaseIds {
        let mut collected = CaseIds::default();
        for id in ids {
            collected.text.push_str(id.as_ref());
            collected.ends.push(collected.text.len());
        }
        let mut sorted: Vec<u32> = (0..).take(collected.len()).collect();
        sorted.sort_unstable_by_key(|number| (collected.at(*number), *number));
        collected.sorted = sorted;
        collected
    }
}

impl Serialize for CaseIds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for CaseIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CaseIds, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_by_index_and_by_text() {
        let ids: CaseIds = ["b", "", "ab", "a"].into_iter().collect();
        assert_eq!(ids.iter().collect::<Vec<_>>(), ["b", "", "ab", "a"]);
        let positions: Vec<Option<usize>> =
            ["b", "", "ab", "a", "c"].iter().map(|id| ids.position(id)).collect();
        assert_eq!(positions, [Some(0), Some(1), Some(2), Some(3), None]);
        assert_eq!(ids.get(4), None);
        assert_eq!(ids.repeated().count(), 0);
    }

    #[test]
    fn repeated_ids_are_returned_in_order() {
        let ids: CaseIds = ["x", "y", "x", "x"].into_iter().collect();
        assert_eq!(ids.repeated().collect::<Vec<_>>(), [(0, 2), (2, 3)]);
    }
}
