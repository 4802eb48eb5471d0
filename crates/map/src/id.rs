//! Item ids: short names by which the answers in a reply are matched with their rows.

use crate::row::Row;
use std::collections::HashSet;

/// Characters for the first position. It is a letter, so that no id looks like a number in any format.
/// Easily confused characters are left out.
const LETTERS: &[u8; 23] = b"abcdefghjkmnpqrstuvwxyz";
/// Characters for the other positions.
const CHARACTERS: &[u8; 31] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// Default length, which allows about 600 million ids.
const DEFAULT_LENGTH: usize = 6;

/// Returns distinct ids for the rows of one request.
///
/// They depend only on the seed, the rows and their indices in the input, so that equal jobs send equal
/// requests.
pub fn ids<'r>(seed: u64, rows: impl IntoIterator<Item = &'r Row>) -> Vec<String> {
    let hashes: Vec<blake3::Hash> = rows.into_iter().map(|row| hash(seed, row)).collect();
    let mut length = DEFAULT_LENGTH;
    loop {
        let ids: Vec<String> = hashes.iter().map(|hash| encode(hash, length)).collect();
        let distinct: HashSet<&String> = ids.iter().collect();
        // Full-length ids are accepted as they are: the hashes differ, because row indices do.
        if distinct.len() == ids.len() || length >= hashes.first().map_or(0, |h| h.as_bytes().len())
        {
            return ids;
        }
        length += 1;
    }
}

fn hash(seed: u64, row: &Row) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).update(&row.index.to_le_bytes());
    for text in row.fields.iter().flat_map(|(name, value)| [name.as_str(), value.get()]) {
        // The length keeps field boundaries apart, so that different rows never hash alike.
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hasher.finalize()
}

fn encode(hash: &blake3::Hash, length: usize) -> String {
    let bytes = hash.as_bytes().iter().take(length).enumerate();
    bytes
        .map(|(position, byte)| match position {
            0 => char::from(LETTERS[usize::from(*byte) % LETTERS.len()]),
            _ => char::from(CHARACTERS[usize::from(*byte) % CHARACTERS.len()]),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::to_raw_value;

    fn row(index: u64, text: &str) -> Row {
        Row { index, fields: vec![("t".to_owned(), to_raw_value(text).unwrap())] }
    }

    #[test]
    fn ids_are_short_stable_and_never_numeric() {
        let rows: Vec<Row> = (0..1000).map(|index| row(index, "same text")).collect();
        let first = ids(1, &rows);
        assert_eq!(first, ids(1, &rows));
        assert_ne!(first, ids(2, &rows));
        // The id of a row does not depend on its pack, unless it must be longer to be distinct.
        assert_eq!(ids(1, &rows[7..9]), first[7..9]);
        for id in &first {
            assert!(id.len() == 6 && id.starts_with(|c: char| c.is_ascii_lowercase()), "{id}");
            assert!(!id.contains(['0', '1', 'i', 'l', 'o']), "{id}");
        }
        assert_ne!(ids(1, [&row(3, "a")]), ids(1, [&row(3, "b")]));
    }

    #[test]
    fn ids_with_equal_prefixes_are_lengthened() {
        // Among 60 000 ids, some share their first six characters.
        let rows: Vec<Row> = (0..60_000).map(|index| row(index, "x")).collect();
        let all = ids(0, &rows);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), rows.len());
        assert!(all[0].len() > DEFAULT_LENGTH, "ids are lengthened");
        assert!(all[0].starts_with(&ids(0, &rows[..1])[0]));
    }
}
