//! The part of an answer that is compared with the same part of another.

use regex::Regex;
use std::fmt;
use std::sync::Arc;

/// Finds the part of an answer that is compared; `None` when there is none.
pub type Extractor = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What is compared of answers.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Extraction {
    /// All of it; case, spaces and a full stop at the end do not matter.
    #[default]
    Text,
    /// The last number in it, such as `-1234.5`; `1,234.50` is the same.
    LastNumber,
    /// The last match of a pattern: its first group, or all of it; compared as [`Text`](Self::Text).
    Pattern(Regex),
    /// Whatever a function finds, as it is.
    Function(Extractor),
}

impl fmt::Debug for Extraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extraction::Text => f.write_str("Text"),
            Extraction::LastNumber => f.write_str("LastNumber"),
            Extraction::Pattern(pattern) => f.debug_tuple("Pattern").field(pattern).finish(),
            Extraction::Function(_) => f.write_str("Function"),
        }
    }
}

impl Extraction {
    /// The part that is compared; `None` when the answer has none.
    pub fn of(&self, answer: &str) -> Option<String> {
        match self {
            Extraction::Text => normal(answer),
            Extraction::LastNumber => last_number(answer),
            Extraction::Pattern(pattern) => {
                let found = pattern.captures_iter(answer).last()?;
                normal(found.get(1).or_else(|| found.get(0))?.as_str())
            }
            Extraction::Function(function) => function(answer),
        }
    }
}

fn normal(text: &str) -> Option<String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let text = words.join(" ");
    let text = text.trim_end_matches(['.', '。']).trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The last number, without separators of thousands and without zeros that say nothing.
fn last_number(text: &str) -> Option<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || [',', '.'].contains(&letter);
    let end = text.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let before = text.get(..end)?;
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, letter)| is_part(*letter))
        .map(|(place, _)| place)
        .last()?;
    let (head, number) = before.split_at(start);
    let is_negative = head.ends_with(['-', '\u{2212}'])
        && !head.trim_end_matches(['-', '\u{2212}']).ends_with(char::is_alphanumeric);
    let number = number.trim_start_matches(',').replace(',', "");
    // Several points before it are an ellipsis.
    let number = if number.starts_with("..") { number.trim_start_matches('.') } else { &number };
    let (whole, fraction) = match number.rsplit_once('.') {
        // With several points, as in a version or a date, it is no number.
        Some((whole, _)) if whole.contains('.') => return Some(number.to_owned()),
        Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
        None => (number, ""),
    };
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let sign = if is_negative && (whole, fraction) != ("0", "") { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_equal_but_for_case_and_space() {
        for (one, other) in [("Paris.", " paris"), ("New\nYork", "new  york"), ("é", "É")] {
            assert_eq!(Extraction::Text.of(one), Extraction::Text.of(other), "{one}");
        }
        assert_eq!(Extraction::Text.of(" . "), None);
    }

    #[test]
    fn the_last_number() {
        for (text, expected) in [
            ("It is 42.", Some("42")),
            ("3 apples and 4, so 7", Some("7")),
            ("$1,234.50", Some("1234.5")),
            ("007", Some("7")),
            ("-5", Some("-5")),
            ("a \u{2212}5.0 b", Some("-5")),
            ("10-5", Some("5")),
            ("-0.0", Some("0")),
            ("0.250", Some("0.25")),
            ("version 1.2.3", Some("1.2.3")),
            ("and so on...5", Some("5")),
            ("x = .5", Some("0.5")),
            ("none", None),
            ("", None),
            ("４２", None),
            ("день 12-й", Some("12")),
        ] {
            assert_eq!(Extraction::LastNumber.of(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_last_match_of_a_pattern() {
        let pattern = Extraction::Pattern(Regex::new(r"(?i)answer:\s*(\w+)").unwrap());
        assert_eq!(pattern.of("Answer: A\nno, answer: B").as_deref(), Some("b"));
        assert_eq!(pattern.of("A"), None);
        let whole = Extraction::Pattern(Regex::new(r"[A-D]\b").unwrap());
        assert_eq!(whole.of("A, then C").as_deref(), Some("c"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_trouble(text in "(?s).*") {
            Extraction::LastNumber.of(&text);
            Extraction::Text.of(&text);
        }
    }
}
