//! What was noted last, by id. Agents tell the same thing several times, but not much later.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most ids that are remembered.
const MOST: usize = 4096;

/// Values by id, as many as there is room for. Of an id, however long, a number is kept.
#[derive(Debug)]
pub(super) struct Recent<T> {
    values: BTreeMap<u64, T>,
    /// Oldest first.
    order: VecDeque<u64>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent { values: BTreeMap::new(), order: VecDeque::new() }
    }
}

/// What became of a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Noted<T> {
    /// It took the place of an earlier one of the same id.
    Again,
    /// It is new, and the oldest one may have had to go.
    New(Option<T>),
}

impl<T> Recent<T> {
    pub(super) fn note(&mut self, id: &str, value: T) -> Noted<T> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let number = hasher.finish();
        if self.values.insert(number, value).is_some() {
            return Noted::Again;
        }
        self.order.push_back(number);
        let oldest = if self.order.len() > MOST { self.order.pop_front() } else { None };
        Noted::New(oldest.and_then(|oldest| self.values.remove(&oldest)))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut recent = Recent::default();
        for number in 0..MOST {
            assert_eq!(recent.note(&number.to_string(), number), Noted::New(None));
        }
        assert_eq!(recent.note("0", 7), Noted::Again);
        assert_eq!(recent.note("more", 1), Noted::New(Some(7)));
        assert_eq!(recent.note("1", 1), Noted::Again);
        assert_eq!(recent.values().count(), MOST);
    }
}
