//! Problems of files written by the user, with their positions.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Problem of a file written by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Code such as `EVAL_INVALID_THRESHOLD`, for scripts.
    pub code: Option<&'static str>,
    /// Description of the problem.
    pub message: String,
    /// File with the problem.
    pub path: PathBuf,
    /// Position in the file; absent for the file as a whole.
    pub position: Option<Box<SourcePosition>>,
    /// How to fix the problem.
    pub hint: Option<String>,
}

/// Position in a file with an excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePosition {
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the line.
    pub excerpt: String,
    /// Byte range within `excerpt`.
    pub span: Range<usize>,
}

impl SourcePosition {
    /// Returns the position of a byte range of a text.
    pub fn of(text: &str, span: Range<usize>) -> SourcePosition {
        let start = floor(text, span.start);
        let end = floor(text, span.end.max(span.start));
        let from = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let to = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
        // One line is enough, even of a long table.
        let to = text[from..to].find('\n').map_or(to, |newline| from + newline);
        let excerpt = text[from..to].trim_end_matches('\r').to_owned();
        let length = excerpt.len();
        SourcePosition {
            line: text[..start].matches('\n').count() + 1,
            column: text[from..start].chars().count() + 1,
            span: (start - from).min(length)
                ..(end - from).clamp(start - from, length.max(start - from)),
            excerpt,
        }
    }

    /// Returns the position of the first byte that is not UTF-8, without an excerpt.
    pub fn of_invalid_utf8(bytes: &[u8]) -> SourcePosition {
        let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let position = SourcePosition::of(valid, valid.len()..valid.len());
        SourcePosition { excerpt: String::new(), span: 0..0, ..position }
    }

    /// Returns the position of a line of a file that is not in memory.
    pub fn line(line: usize, text: &str) -> SourcePosition {
        const MAX_EXCERPT_CHARS: usize = 200;
        let excerpt: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
        SourcePosition { line, column: 1, span: 0..excerpt.len(), excerpt }
    }
}

/// Returns the nearest character boundary at or below `index`.
fn floor(text: &str, mut index: usize) -> usize {
    index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// Writes `file:line:column: message`, and the hint on a separate line.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(position) = &self.position {
            write!(f, ":{}:{}", position.line, position.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(code) = self.code {
            write!(f, " [{code}]")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Problems of a suite in the order of their positions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SuiteError {
    problems: Vec<Problem>,
}

impl SuiteError {
    /// Returns the problems.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Converts the error into its problems.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

impl From<Problem> for SuiteError {
    fn from(problem: Problem) -> SuiteError {
        SuiteError { problems: vec![problem] }
    }
}

impl From<Problems<'_>> for SuiteError {
    fn from(problems: Problems<'_>) -> SuiteError {
        SuiteError { problems: problems.into_sorted() }
    }
}

/// Collector of the problems of a file.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    path: &'a Path,
    text: &'a str,
    /// A second file, whose positions follow those of the first.
    second: Option<(&'a Path, &'a str)>,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(path: &'a Path, text: &'a str) -> Problems<'a> {
        Problems { path, text, second: None, found: Vec::new() }
    }

    /// Adds a second file: byte ranges behind the end of the first belong to it.
    pub(crate) fn add_file(&mut self, path: &'a Path, text: &'a str) {
        self.second = Some((path, text));
    }

    /// Adds a problem at a byte range of the file and returns it, so that code and hint can be set.
    pub(crate) fn at(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Problem {
        let end = self.text.len();
        let (path, position) = match self.second {
            Some((path, text)) if span.start >= end => {
                (path, SourcePosition::of(text, span.start - end..span.end.max(end) - end))
            }
            _ => (self.path, SourcePosition::of(self.text, span)),
        };
        let (path, position) = (path.to_owned(), Some(Box::new(position)));
        let problem = Problem { code: None, message: message.into(), path, position, hint: None };
        self.found.push(problem);
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    pub(crate) fn extend(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.found.extend(problems);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns all problems in the order of their positions.
    pub(crate) fn into_sorted(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| {
            let position =
                problem.position.as_ref().map(|position| (position.line, position.column));
            (problem.path.clone(), position)
        });
        // A value with several uses may be reported more than once.
        self.found.dedup();
        self.found
    }
}

impl Problem {
    pub(crate) fn with_hint(&mut self, hint: impl Into<String>) -> &mut Problem {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns a hint with the most similar known word, or with all known words.
pub fn suggest<'k>(word: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> Option<String> {
    const MIN_SIMILARITY: f64 = 0.7;
    let best = known
        .clone()
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match best {
        Some((_, candidate)) => Some(format!("did you mean `{candidate}`?")),
        None => {
            let all: Vec<String> = known.into_iter().map(|word| format!("`{word}`")).collect();
            (!all.is_empty()).then(|| format!("expected one of: {}", all.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_counts_characters_and_keeps_one_line() {
        let text = "a = 1\nnäme = \"x\"\nlast";
        let position = SourcePosition::of(text, 6..11);
        assert_eq!(
            (position.line, position.column, &position.excerpt[position.span]),
            (2, 1, "näme")
        );
        let position = SourcePosition::of(text, 14..17);
        assert_eq!(
            (position.line, position.column, &position.excerpt[position.span]),
            (2, 8, "\"x\"")
        );
        let whole = SourcePosition::of(text, 0..text.len());
        assert_eq!((whole.excerpt.as_str(), whole.span), ("a = 1", 0..5));
        let end = SourcePosition::of(text, text.len()..text.len() + 5);
        assert_eq!((end.line, end.column, end.span), (3, 5, 4..4));
        assert_eq!(SourcePosition::of("", 0..0).line, 1);
    }

    #[test]
    fn suggestion_prefers_the_similar_word() {
        let known = ["trials", "threshold", "name"];
        assert_eq!(suggest("trails", known).unwrap(), "did you mean `trials`?");
        assert_eq!(
            suggest("zzz", known).unwrap(),
            "expected one of: `trials`, `threshold`, `name`"
        );
        assert_eq!(suggest("zzz", []), None);
    }
}
