//! Parts of an output: code blocks, and JSON inside prose.

use crate::excerpt::excerpt;
use crate::parameters::{Parameters, missing};
use crate::{Error, Inconclusive};
use serde::de::IgnoredAny;

/// The part of the output that a check tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputPart {
    /// The first fenced code block, optionally of a language.
    CodeBlock {
        /// The first word after the fence; case is ignored.
        language: Option<String>,
    },
    /// The first JSON object or list.
    Json,
}

impl OutputPart {
    pub(crate) fn build(parameters: Parameters<'_>) -> Result<Option<OutputPart>, Error> {
        let language = parameters.text("language").map(str::to_owned);
        match parameters.text("extract") {
            Some("code_block") => Ok(Some(OutputPart::CodeBlock { language })),
            _ if language.is_some() => {
                Err(Error::new("language", "`language` is for `extract = \"code_block\"`"))
            }
            Some("json") => Ok(Some(OutputPart::Json)),
            Some(_) => Err(missing("extract")),
            None => Ok(None),
        }
    }

    /// Returns the part, if any. In a truncated output, the part must be certain to be complete.
    pub(crate) fn find<'o>(
        &self,
        output: &'o str,
        completeness: &Result<(), Inconclusive>,
    ) -> Result<Option<&'o str>, Inconclusive> {
        match self {
            OutputPart::CodeBlock { language } => match code_block(output, language.as_deref()) {
                Some(CodeBlock { content, is_closed: true }) => Ok(Some(content)),
                other => completeness.clone().map(|()| other.map(|block| block.content)),
            },
            OutputPart::Json => first_json(output, completeness, |_| Ok(true)),
        }
    }

    /// Returns the message for an output without the part.
    pub(crate) fn describe_absence(&self, output: &str) -> String {
        let part = match self {
            OutputPart::CodeBlock { language: Some(language) } => {
                format!("code block of {language:?}")
            }
            OutputPart::CodeBlock { language: None } => "code block".to_owned(),
            OutputPart::Json => "JSON object or list".to_owned(),
        };
        format!("no {part} in {}", excerpt(output))
    }
}

/// A fenced code block.
struct CodeBlock<'o> {
    content: &'o str,
    /// Whether a complete line closes it.
    is_closed: bool,
}

/// Returns the first fenced code block (of a language) as CommonMark defines it: three or more backticks or
/// tildes, closed by at least as many or by the end of the text.
fn code_block<'o>(text: &'o str, language: Option<&str>) -> Option<CodeBlock<'o>> {
    let mut lines = LineOffsets { text, offset: 0 };
    while let Some((_, line)) = lines.next() {
        let Some((fence, info)) = parse_fence(line) else { continue };
        let start = lines.offset;
        let mut end = text.len();
        let mut is_closed = false;
        while let Some((offset, line)) = lines.next() {
            if closes_fence(line, fence) {
                end = offset;
                is_closed = text[..lines.offset].ends_with('\n');
                break;
            }
        }
        let word = info.split_whitespace().next().unwrap_or_default();
        let matches =
            language.is_none_or(|language| word.to_lowercase() == language.to_lowercase());
        if matches {
            let content = text.get(start..end).unwrap_or_default();
            let content = content.strip_suffix('\n').unwrap_or(content);
            return Some(CodeBlock { content, is_closed });
        }
    }
    None
}

/// Lines with their byte offsets.
struct LineOffsets<'t> {
    text: &'t str,
    offset: usize,
}

impl<'t> Iterator for LineOffsets<'t> {
    type Item = (usize, &'t str);

    fn next(&mut self) -> Option<(usize, &'t str)> {
        let rest = self.text.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive('\n').next()?;
        let start = self.offset;
        self.offset += line.len();
        Some((start, line.trim_end_matches(['\n', '\r'])))
    }
}

/// Splits an opening line into the fence and its info string.
fn parse_fence(line: &str) -> Option<(&str, &str)> {
    let inner = line.trim_start_matches(' ');
    let mark = inner.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let info = inner.trim_start_matches(mark);
    let fence = inner.strip_suffix(info)?;
    let is_fence = line.len() - inner.len() <= 3 && fence.len() >= 3;
    // Backticks on the same line are inline code.
    (is_fence && !(mark == '`' && info.contains('`'))).then_some((fence, info))
}

fn closes_fence(line: &str, fence: &str) -> bool {
    line.trim_start_matches(' ')
        .strip_prefix(fence)
        .is_some_and(|rest| rest.trim_end().trim_start_matches(&fence[..1]).is_empty())
}

/// Returns the text of the first JSON object or list that meets the condition.
///
/// Every bracket is a possible start. The bytes that failed parses read are limited, so a text made of
/// brackets does not take minutes. A value that starts in a truncated text may continue after the cut.
pub(crate) fn first_json<'t>(
    text: &'t str,
    completeness: &Result<(), Inconclusive>,
    condition: impl Fn(&str) -> Result<bool, Inconclusive>,
) -> Result<Option<&'t str>, Inconclusive> {
    let mut budget = 4 * text.len() + 65_536;
    let mut position = 0;
    while let Some(found) = text.get(position..).and_then(|rest| rest.find(['{', '['])) {
        let start = position + found;
        let rest = text.get(start..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                let part = rest.get(..values.byte_offset()).unwrap_or_default();
                if condition(part)? {
                    return Ok(Some(part));
                }
                // A value inside one that does not meet the condition is no candidate.
                position = start + part.len();
            }
            Some(Err(error)) => {
                if error.is_eof() {
                    completeness.clone()?;
                }
                let read = byte_offset(rest, error.line(), error.column());
                budget = budget.checked_sub(read + 1).ok_or_else(|| {
                    Inconclusive("too many brackets to search for JSON".to_owned())
                })?;
                position = start + 1;
            }
            None => position = start + 1,
        }
    }
    completeness.clone().map(|()| None)
}

/// Converts a line and column of serde_json into a byte offset.
fn byte_offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_code_block_is_found() {
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
            let found = code_block(text, language).map(|block| block.content);
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn first_json_in_prose_is_found() {
        let any = |text: &'static str| first_json(text, &Ok(()), |_| Ok(true)).unwrap();
        assert_eq!(any("It is {\"a\": [1, 2]}, I think"), Some("{\"a\": [1, 2]}"));
        assert_eq!(any("see [1] and {not json}"), Some("[1]"));
        assert_eq!(any("{not json} but [2]"), Some("[2]"));
        assert_eq!(any("open [ then {\"a\": 1}"), Some("{\"a\": 1}"));
        assert_eq!(any("{\"ключ\": \"é}\"} é"), Some("{\"ключ\": \"é}\"}"));
        assert_eq!(any("just 12 and \"text\" and true"), None);
        assert_eq!(any(""), None);
        let objects =
            first_json("[1] {\"a\": 1}", &Ok(()), |part| Ok(part.starts_with('{'))).unwrap();
        assert_eq!(objects, Some("{\"a\": 1}"));
    }

    #[test]
    fn search_among_many_brackets_is_limited() {
        for text in ["[".repeat(1 << 20), "{\"a\":".repeat(1 << 18), "[1,\n".repeat(1 << 18)] {
            assert!(first_json(&text, &Ok(()), |_| Ok(true)).is_err());
        }
        let deep = "[".repeat(1 << 19) + &"]".repeat(1 << 19);
        assert_eq!(first_json(&deep, &Ok(()), |_| Ok(false)), Ok(None));
    }
}
