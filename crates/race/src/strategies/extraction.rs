//! Extraction of the part of an answer that is compared.

use regex::Regex;
use std::fmt;
use std::sync::Arc;

/// Returns the part of an answer that is compared, if any.
pub type Extractor = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The part of an answer that is compared.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Extraction {
    /// The whole answer; case, white space and a final full stop are ignored.
    #[default]
    Text,
    /// The last number, such as `-1234.5`; `1,234.50` equals `1234.5`.
    LastNumber,
    /// The last match of a pattern: its first group, or the whole match; compared like [`Text`](Self::Text).
    Pattern(Regex),
    /// The result of a function, unchanged.
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
    /// Returns the part that is compared; `None` if the answer has none.
    pub fn extract(&self, answer: &str) -> Option<String> {
        match self {
            Extraction::Text => normalize(answer),
            Extraction::LastNumber => last_number(answer),
            Extraction::Pattern(pattern) => {
                let found = pattern.captures_iter(answer).last()?;
                normalize(found.get(1).or_else(|| found.get(0))?.as_str())
            }
            Extraction::Function(function) => function(answer),
        }
    }
}

fn normalize(text: &str) -> Option<String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let text = words.join(" ");
    let text = text.trim_end_matches(['.', '。']).trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the last number, without thousands separators and insignificant zeros.
fn last_number(text: &str) -> Option<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || [',', '.'].contains(&letter);
    let end = text.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let before = text.get(..end)?;
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, letter)| is_part(*letter))
        .map(|(index, _)| index)
        .last()?;
    let (head, number) = before.split_at(start);
    let is_negative = head.ends_with(['-', '\u{2212}'])
        && !head.trim_end_matches(['-', '\u{2212}']).ends_with(char::is_alphanumeric);
    let number = number.trim_start_matches(',').replace(',', "");
    // Several leading points are an ellipsis.
    let number = if number.starts_with("..") { number.trim_start_matches('.') } else { &number };
    let (whole, fraction) = match number.rsplit_once('.') {
        // Several points, as in a version or a date, are not a number.
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
    fn text_ignores_case_and_white_space() {
        for (one, other) in [("Paris.", " paris"), ("New\nYork", "new  york"), ("é", "É")] {
            assert_eq!(Extraction::Text.extract(one), Extraction::Text.extract(other), "{one}");
        }
        assert_eq!(Extraction::Text.extract(" . "), None);
    }

    #[test]
    fn last_number_is_extracted_and_normalized() {
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
            assert_eq!(Extraction::LastNumber.extract(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn last_match_of_a_pattern_is_extracted() {
        let pattern = Extraction::Pattern(Regex::new(r"(?i)answer:\s*(\w+)").unwrap());
        assert_eq!(pattern.extract("Answer: A\nno, answer: B").as_deref(), Some("b"));
        assert_eq!(pattern.extract("A"), None);
        let whole = Extraction::Pattern(Regex::new(r"[A-D]\b").unwrap());
        assert_eq!(whole.extract("A, then C").as_deref(), Some("c"));
    }

    proptest::proptest! {
        #[test]
        fn extraction_accepts_any_text(text in "(?s).*") {
            Extraction::LastNumber.extract(&text);
            Extraction::Text.extract(&text);
        }
    }
}
