//! How many edits apart two texts are.

/// Steps after which a comparison is given up: less than a tenth of a second.
const MOST_STEPS: usize = 20_000_000;

/// A comparison that takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooFar;

/// The Levenshtein distance (insertions, deletions and substitutions of characters) of two texts
/// when it is at most `most`.
///
/// Ukkonen's method (1985, "Algorithms for approximate string matching"): per number of edits, how
/// far each diagonal gets. It looks at 2·`most` + 1 diagonals only, so long texts are no trouble.
pub(crate) fn levenshtein(one: &str, other: &str, most: usize) -> Result<Option<usize>, TooFar> {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    if one.len().abs_diff(other.len()) > most {
        return Ok(None);
    }
    let (width, goal) = (one.len() as isize, other.len() as isize - one.len() as isize);
    let mut steps = 0;
    let mut slide = |mut row: isize, diagonal: isize| {
        let start = row;
        while let (Some(a), Some(b)) = (at(&one, row), at(&other, row + diagonal)) {
            if a != b {
                break;
            }
            row += 1;
        }
        steps += (row - start) as usize + 1;
        (row, steps > MOST_STEPS)
    };
    // `reached[e + diagonal]`: rows of `one` that some script of `edits` edits covers there.
    let mut reached: Vec<isize> = Vec::new();
    for edits in 0..=most.min(one.len().max(other.len())) {
        let span = edits as isize;
        let before = |diagonal: isize| -> Option<isize> {
            let index = usize::try_from(diagonal + span - 1).ok()?;
            reached.get(index).copied()
        };
        let mut next = Vec::with_capacity(2 * edits + 1);
        for diagonal in -span..=span {
            let start = if edits == 0 {
                0
            } else {
                let substituted = before(diagonal).map_or(-1, |row| row + 1);
                let deleted = before(diagonal + 1).map_or(-1, |row| row + 1);
                let inserted = before(diagonal - 1).unwrap_or(-1);
                // Not beyond the end of either text.
                substituted.max(deleted).max(inserted).min(width).min(width + goal - diagonal)
            };
            let (row, too_far) = slide(start.max(0).max(-diagonal), diagonal);
            if too_far {
                return Err(TooFar);
            }
            if diagonal == goal && row >= width {
                return Ok(Some(edits));
            }
            next.push(row);
        }
        reached = next;
    }
    Ok(None)
}

fn at(text: &[char], index: isize) -> Option<char> {
    text.get(usize::try_from(index).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The textbook's table.
    fn plain(one: &str, other: &str) -> usize {
        let other: Vec<char> = other.chars().collect();
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in one.chars().enumerate() {
            let mut corner = row[0];
            row[0] = i + 1;
            for (j, b) in other.iter().enumerate() {
                let substituted = corner + usize::from(a != *b);
                corner = row[j + 1];
                row[j + 1] = substituted.min(row[j] + 1).min(corner + 1);
            }
        }
        row[other.len()]
    }

    #[test]
    fn known_distances() {
        for (one, other, distance) in [
            ("kitten", "sitting", 3),
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("flaw", "lawn", 2),
            ("été", "ete", 2),
            ("日本語", "日本", 1),
            ("aaaa", "aa", 2),
        ] {
            assert_eq!(levenshtein(one, other, 10), Ok(Some(distance)), "{one} {other}");
            assert_eq!(levenshtein(other, one, distance), Ok(Some(distance)), "{one} {other}");
            if distance > 0 {
                assert_eq!(levenshtein(one, other, distance - 1), Ok(None), "{one} {other}");
            }
        }
    }

    #[test]
    fn long_texts_are_compared_or_given_up() {
        let long = "abcdefghij".repeat(100_000);
        let mut changed = long.clone();
        changed.replace_range(500_000..500_003, "XYZ");
        assert_eq!(levenshtein(&long, &changed, 5), Ok(Some(3)));
        assert_eq!(levenshtein(&long, &changed, 2), Ok(None));
        assert_eq!(levenshtein(&long, "a", 5), Ok(None));
        let (one, other) = ("a".repeat(1 << 20), "b".repeat(1 << 20));
        assert_eq!(levenshtein(&one, &other, 1_000), Ok(None));
        assert_eq!(levenshtein(&one, &other, 100_000), Err(TooFar));
    }

    proptest! {
        #[test]
        fn the_band_changes_nothing(one in "[ab]{0,12}", other in "[abc]{0,12}", most in 0..14_usize) {
            let distance = plain(&one, &other);
            let expected = (distance <= most).then_some(distance);
            prop_assert_eq!(levenshtein(&one, &other, most), Ok(expected));
        }
    }
}
