//! Short names that items have in a request, so that answers find their rows.

use crate::row::Row;
use std::collections::HashSet;

/// The first character is a letter, so that no id looks like a number in any format; characters
/// that look like others are left out.
const LETTERS: &[u8; 23] = b"abcdefghjkmnpqrstuvwxyz";
const CHARACTERS: &[u8; 31] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// Usual length: about 600 million ids.
const LENGTH: usize = 6;

/// The ids of the rows of one request, all different. They depend on the seed, on the rows and on
/// their places in the input, and on nothing else: equal runs make equal requests.
pub fn ids<'r>(seed: u64, rows: impl IntoIterator<Item = &'r Row>) -> Vec<String> {
    let hashes: Vec<blake3::Hash> = rows.into_iter().map(|row| hash(seed, row)).collect();
    let mut length = LENGTH;
    loop {
        let ids: Vec<String> = hashes.iter().map(|hash| spell(hash, length)).collect();
        let different: HashSet<&String> = ids.iter().collect();
        // Whole hashes differ because places do.
        if different.len() == ids.len()
            || length >= hashes.first().map_or(0, |h| h.as_bytes().len())
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
        // With its length, so that no two rows look the same.
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hasher.finalize()
}

fn spell(hash: &blake3::Hash, length: usize) -> String {
    let bytes = hash.as_bytes().iter().take(length).enumerate();
    bytes
        .map(|(place, byte)| match place {
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
    fn ids_are_short_stable_and_never_look_like_numbers() {
        let rows: Vec<Row> = (0..1000).map(|index| row(index, "same text")).collect();
        let first = ids(1, &rows);
        assert_eq!(first, ids(1, &rows));
        assert_ne!(first, ids(2, &rows));
        // A row has its id wherever it is packed, unless two have to be told apart.
        assert_eq!(ids(1, &rows[7..9]), first[7..9]);
        for id in &first {
            assert!(id.len() == 6 && id.starts_with(|c: char| c.is_ascii_lowercase()), "{id}");
            assert!(!id.contains(['0', '1', 'i', 'l', 'o']), "{id}");
        }
        assert_ne!(ids(1, [&row(3, "a")]), ids(1, [&row(3, "b")]));
    }

    #[test]
    fn ids_of_one_request_differ_even_when_beginnings_are_alike() {
        // Among so many some pairs are alike in their first six characters.
        let rows: Vec<Row> = (0..60_000).map(|index| row(index, "x")).collect();
        let all = ids(0, &rows);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), rows.len());
        assert!(all[0].len() > LENGTH, "they were lengthened");
        assert!(all[0].starts_with(&ids(0, &rows[..1])[0]));
    }
}
