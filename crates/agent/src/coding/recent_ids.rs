//! Values of recent ids. Agents repeat events with the same id, but not much later.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of ids.
const MAX_IDS: usize = 4096;

/// Map of the most recent ids to values. It stores hashes of the ids, which can be long.
#[derive(Debug)]
pub(super) struct RecentIds<T> {
    values: BTreeMap<u64, T>,
    /// Oldest first.
    order: VecDeque<u64>,
}

impl<T> Default for RecentIds<T> {
    fn default() -> RecentIds<T> {
        RecentIds { values: BTreeMap::new(), order: VecDeque::new() }
    }
}

/// Result of an insertion.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InsertResult<T> {
    /// The value replaced the one with the same id.
    Replaced,
    /// The id is new; the value of the oldest id, if it was removed.
    New(Option<T>),
}

impl<T> RecentIds<T> {
    pub(super) fn insert(&mut self, id: &str, value: T) -> InsertResult<T> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let hash = hasher.finish();
        if self.values.insert(hash, value).is_some() {
            return InsertResult::Replaced;
        }
        self.order.push_back(hash);
        let oldest = if self.order.len() > MAX_IDS { self.order.pop_front() } else { None };
        InsertResult::New(oldest.and_then(|oldest| self.values.remove(&oldest)))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_id_is_removed_first() {
        let mut recent = RecentIds::default();
        for number in 0..MAX_IDS {
            assert_eq!(recent.insert(&number.to_string(), number), InsertResult::New(None));
        }
        assert_eq!(recent.insert("0", 7), InsertResult::Replaced);
        assert_eq!(recent.insert("more", 1), InsertResult::New(Some(7)));
        assert_eq!(recent.insert("1", 1), InsertResult::Replaced);
        assert_eq!(recent.values().count(), MAX_IDS);
    }
}
