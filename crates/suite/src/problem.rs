//! What is wrong with a file, and where.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Something wrong with what the user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A code such as `EVAL_INVALID_THRESHOLD`, for scripts.
    pub code: Option<&'static str>,
    /// What is wrong.
    pub message: String,
    /// Which file.
    pub path: PathBuf,
    /// Where in it; absent when the file as a whole is meant.
    pub position: Option<Box<SourcePosition>>,
    /// What to write instead.
    pub hint: Option<String>,
}

/// A place in a file, with the text around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePosition {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The lines concerned.
    pub excerpt: String,
    /// The bytes of `excerpt` that are meant.
    pub span: Range<usize>,
}

impl SourcePosition {
    /// The place of some bytes in a text.
    pub fn of(text: &str, span: Range<usize>) -> SourcePosition {
        let start = floor(text, span.start);
        let end = floor(text, span.end.max(span.start));
        let from = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let to = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
        // One line is enough of a table that goes on for a page.
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

    /// A whole line of a file that is not held in memory.
    pub fn line(line: usize, text: &str) -> SourcePosition {
        const MOST: usize = 200;
        let excerpt: String = text.chars().take(MOST).collect();
        SourcePosition { line, column: 1, span: 0..excerpt.len(), excerpt }
    }
}

/// The nearest character boundary at or below.
fn floor(text: &str, mut index: usize) -> usize {
    index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// `file:line:column: message`, then the hint on its own line.
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

/// The problems that make a suite unusable, in the order of their positions.
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

/// Collects the problems of one file.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    path: &'a Path,
    text: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(crate) fn new(path: &'a Path, text: &'a str) -> Problems<'a> {
        Problems { path, text, found: Vec::new() }
    }

    /// Adds a problem at some bytes of the file; its code and hint can be set on what is returned.
    pub(crate) fn at(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Problem {
        let position = Some(Box::new(SourcePosition::of(self.text, span)));
        let path = self.path.to_owned();
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

    /// All problems in the order of their places.
    pub(crate) fn into_sorted(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| {
            let position =
                problem.position.as_ref().map(|position| (position.line, position.column));
            (problem.path.clone(), position)
        });
        // What is used in two ways may be looked at twice.
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

/// A hint with the most similar of the known words, or with all of them.
pub fn suggest<'k>(word: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> Option<String> {
    const SIMILAR: f64 = 0.7;
    let best = known
        .clone()
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match best {
        Some((_, candidate)) => Some(format!("did you mean `{candidate}`?")),
        None => {
            let all: Vec<String> = known.into_iter().map(|word| format!("`{word}`")).collect();
            (!all.is_empty()).then(|| format!("known here: {}", all.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_keep_one_line() {
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
    fn suggestions_prefer_the_similar_word() {
        let known = ["trials", "threshold", "name"];
        assert_eq!(suggest("trails", known).unwrap(), "did you mean `trials`?");
        assert_eq!(suggest("zzz", known).unwrap(), "known here: `trials`, `threshold`, `name`");
        assert_eq!(suggest("zzz", []), None);
    }
}
