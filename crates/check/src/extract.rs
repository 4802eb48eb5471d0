//! Parts of an output: code blocks, and JSON in the midst of prose.

use crate::parameters::{Parameters, missing};
use crate::words::excerpt;
use crate::{CannotSay, Error};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Which part of the output a check looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extract {
    /// The first fenced code block; of a language, when there is one.
    CodeBlock {
        /// The first word after the fence, upper or lower case.
        language: Option<String>,
    },
    /// The first JSON object or list.
    Json,
}

impl Extract {
    pub(crate) fn build(parameters: Parameters<'_>) -> Result<Option<Extract>, Error> {
        let language = parameters.text("language").map(str::to_owned);
        match parameters.text("extract") {
            Some("code_block") => Ok(Some(Extract::CodeBlock { language })),
            _ if language.is_some() => {
                Err(Error::new("language", "`language` is for `extract = \"code_block\"`"))
            }
            Some("json") => Ok(Some(Extract::Json)),
            Some(_) => Err(missing("extract")),
            None => Ok(None),
        }
    }

    /// The part, if there is one. Of an output that is cut off, one that is certain to be whole.
    pub(crate) fn find<'o>(
        &self,
        output: &'o str,
        is_whole: &Result<(), CannotSay>,
    ) -> Result<Option<&'o str>, CannotSay> {
        match self {
            Extract::CodeBlock { language } => match code_block(output, language.as_deref()) {
                Some(Block { inside, is_closed: true }) => Ok(Some(inside)),
                other => is_whole.clone().map(|()| other.map(|block| block.inside)),
            },
            Extract::Json => first_json(output, is_whole, |_| true),
        }
    }

    /// That there is none, in words.
    pub(crate) fn nothing(&self, output: &str) -> String {
        let part = match self {
            Extract::CodeBlock { language: Some(language) } => {
                format!("code block of {language:?}")
            }
            Extract::CodeBlock { language: None } => "code block".to_owned(),
            Extract::Json => "JSON object or list".to_owned(),
        };
        format!("nothing to look at: no {part} in {}", excerpt(output))
    }
}

/// A fenced code block.
struct Block<'o> {
    inside: &'o str,
    /// There is a line that closes it, with its end.
    is_closed: bool,
}

/// What is inside the first fenced code block (of a language), as CommonMark has it: three or more
/// backticks or tildes, closed by at least as many, or by the end of the text.
fn code_block<'o>(text: &'o str, language: Option<&str>) -> Option<Block<'o>> {
    let mut lines = Lines { text, at: 0 };
    while let Some((_, line)) = lines.next() {
        let Some((fence, info)) = opening(line) else { continue };
        let start = lines.at;
        let mut end = text.len();
        let mut is_closed = false;
        while let Some((place, line)) = lines.next() {
            if closes(line, fence) {
                end = place;
                is_closed = text[..lines.at].ends_with('\n');
                break;
            }
        }
        let word = info.split_whitespace().next().unwrap_or_default();
        let fits = language.is_none_or(|language| word.to_lowercase() == language.to_lowercase());
        if fits {
            let inside = text.get(start..end).unwrap_or_default();
            let inside = inside.strip_suffix('\n').unwrap_or(inside);
            return Some(Block { inside, is_closed });
        }
    }
    None
}

/// Lines with the place where each begins.
struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Lines<'t> {
    type Item = (usize, &'t str);

    fn next(&mut self) -> Option<(usize, &'t str)> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive('\n').next()?;
        let place = self.at;
        self.at += line.len();
        Some((place, line.trim_end_matches(['\n', '\r'])))
    }
}

/// The fence of a line, and what stands after it.
fn opening(line: &str) -> Option<(&str, &str)> {
    let inner = line.trim_start_matches(' ');
    let mark = inner.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let info = inner.trim_start_matches(mark);
    let fence = inner.strip_suffix(info)?;
    let is_fence = line.len() - inner.len() <= 3 && fence.len() >= 3;
    // Backticks on the same line are inline code.
    (is_fence && !(mark == '`' && info.contains('`'))).then_some((fence, info))
}

fn closes(line: &str, fence: &str) -> bool {
    line.trim_start_matches(' ')
        .strip_prefix(fence)
        .is_some_and(|rest| rest.trim_end().trim_start_matches(&fence[..1]).is_empty())
}

/// The text of the first JSON object or list that fits.
///
/// Every bracket may be its beginning. What is read again and again without success is bounded, so
/// that a text made of brackets is given up and not gone through for minutes. What begins in a text
/// that is cut off may go on after it.
pub(crate) fn first_json<'t>(
    text: &'t str,
    is_whole: &Result<(), CannotSay>,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'t str>, CannotSay> {
    let mut budget = 4 * text.len() + 65_536;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find(['{', '['])) {
        let start = at + found;
        let rest = text.get(start..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                let part = rest.get(..values.byte_offset()).unwrap_or_default();
                // What is nested too deeply for a value fits nothing.
                if serde_json::from_str(part).is_ok_and(|value| fits(&value)) {
                    return Ok(Some(part));
                }
                // What is within a value that does not fit is no answer of its own.
                at = start + part.len();
            }
            Some(Err(error)) => {
                if error.is_eof() {
                    is_whole.clone()?;
                }
                let read = offset(rest, error.line(), error.column());
                budget = budget.checked_sub(read + 1).ok_or_else(|| {
                    CannotSay("too many brackets to look for JSON among them".to_owned())
                })?;
                at = start + 1;
            }
            None => at = start + 1,
        }
    }
    is_whole.clone().map(|()| None)
}

/// The byte that a line and a column of serde_json mean.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blocks() {
        for (text, language, expected) in [
            ("```\na\nb\n```", None, Some("a\nb")),
            ("say\n```json\n{}\n```\nthen\n```py\nx\n```", None, Some("{}")),
            ("say\n```json\n{}\n```\nthen\n```py\nx\n```", Some("PY"), Some("x")),
            ("```json\n{}\n```", Some("yaml"), None),
            ("~~~~\n~~~\n~~~~", None, Some("~~~")),
            ("```\n~~~\n```", None, Some("~~~")),
            ("```rust ignore\r\nx\r\n```\r\n", Some("rust"), Some("x\r")),
            ("```\nnever closed", None, Some("never closed")),
            ("```", None, Some("")),
            ("```\n```", None, Some("")),
            ("    ```\nindented code\n    ```", None, None),
            ("```inline``` and so on", None, None),
            ("no block", None, None),
            ("", None, None),
            ("```\nа\u{301}б\n```", None, Some("а\u{301}б")),
        ] {
            let found = code_block(text, language).map(|block| block.inside);
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn json_in_prose() {
        let any = |text: &'static str| first_json(text, &Ok(()), |_| true).unwrap();
        assert_eq!(any("It is {\"a\": [1, 2]}, I think"), Some("{\"a\": [1, 2]}"));
        assert_eq!(any("see [1] and {not json}"), Some("[1]"));
        assert_eq!(any("{not json} but [2]"), Some("[2]"));
        assert_eq!(any("open [ then {\"a\": 1}"), Some("{\"a\": 1}"));
        assert_eq!(any("{\"ключ\": \"é}\"} é"), Some("{\"ключ\": \"é}\"}"));
        assert_eq!(any("just 12 and \"text\" and true"), None);
        assert_eq!(any(""), None);
        let objects = first_json("[1] {\"a\": 1}", &Ok(()), Value::is_object).unwrap();
        assert_eq!(objects, Some("{\"a\": 1}"));
    }

    #[test]
    fn many_brackets_are_given_up_and_not_gone_through() {
        for text in ["[".repeat(1 << 20), "{\"a\":".repeat(1 << 18), "[1,\n".repeat(1 << 18)] {
            assert!(first_json(&text, &Ok(()), |_| true).is_err());
        }
        let deep = "[".repeat(1 << 19) + &"]".repeat(1 << 19);
        assert_eq!(first_json(&deep, &Ok(()), |_| true), Ok(None), "no value is so deep");
    }
}
