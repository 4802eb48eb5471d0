//! Levenshtein distance.

/// Steps after which a comparison stops: less than a tenth of a second.
const MAX_STEPS: usize = 20_000_000;

/// The comparison exceeded [`MAX_STEPS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepLimitExceeded;

/// Returns the Levenshtein distance (insertions, deletions and substitutions of characters) of two texts if
/// it is at most `max`.
///
/// Ukkonen's method (1985, "Algorithms for approximate string matching") computes how far each diagonal
/// reaches per number of edits. It visits only 2·`max` + 1 diagonals, so it handles long texts.
pub(crate) fn levenshtein(
    one: &str,
    other: &str,
    max: usize,
) -> Result<Option<usize>, StepLimitExceeded> {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    if one.len().abs_diff(other.len()) > max {
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
        (row, steps > MAX_STEPS)
    };
    // `reached[edits + diagonal]`: rows of `one` that an edit script of `edits` edits covers on the diagonal.
    let mut reached: Vec<isize> = Vec::new();
    for edits in 0..=max.min(one.len().max(other.len())) {
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
            let (row, is_exceeded) = slide(start.max(0).max(-diagonal), diagonal);
            if is_exceeded {
                return Err(StepLimitExceeded);
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

    /// Textbook dynamic programming.
    fn dynamic_programming(one: &str, other: &str) -> usize {
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
    fn distances_match_known_values() {
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
    fn comparison_of_long_texts_is_limited() {
        let long = "abcdefghij".repeat(100_000);
        let mut changed = long.clone();
        changed.replace_range(500_000..500_003, "XYZ");
        assert_eq!(levenshtein(&long, &changed, 5), Ok(Some(3)));
        assert_eq!(levenshtein(&long, &changed, 2), Ok(None));
        assert_eq!(levenshtein(&long, "a", 5), Ok(None));
        let (one, other) = ("a".repeat(1 << 20), "b".repeat(1 << 20));
        assert_eq!(levenshtein(&one, &other, 1_000), Ok(None));
        assert_eq!(levenshtein(&one, &other, 100_000), Err(StepLimitExceeded));
    }

    proptest! {
        #[test]
        fn banded_distance_equals_dynamic_programming(
            one in "[ab]{0,12}",
            other in "[abc]{0,12}",
            max in 0..14_usize,
        ) {
            let distance = dynamic_programming(&one, &other);
            let expected = (distance <= max).then_some(distance);
            prop_assert_eq!(levenshtein(&one, &other, max), Ok(expected));
        }
    }
}
