//! Reading rows one at a time: CSV, JSON lines, a JSON array.

mod array;
mod csv;
mod lines;
mod quotes;

use crate::row::{Fields, Row};
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

/// How rows are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per line.
    JsonLines,
    /// One JSON array of objects.
    JsonArray,
}

impl RowFormat {
    /// What the name of a file says.
    pub fn of(path: &Path) -> Option<RowFormat> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Some(RowFormat::Csv),
            "jsonl" | "ndjson" => Some(RowFormat::JsonLines),
            "json" => Some(RowFormat::JsonArray),
            _ => None,
        }
    }
}

/// Why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The name does not say what it is.
    #[error("{} is neither .csv, .jsonl, .ndjson nor .json", .0.display())]
    UnknownFormat(PathBuf),
    /// A pipe, a folder or a device.
    #[error("{} is not a file, and rows are read more than once", .0.display())]
    NotAFile(PathBuf),
    /// There is no such file.
    #[error("there is no file {}", .0.display())]
    Missing(PathBuf),
    /// The operating system refuses.
    #[error("cannot read {}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is there is not a row.
    #[error("{}:{line}: {message}", path.display())]
    Bad {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
    /// A cell takes everything up to the end of the file.
    #[error("{}:{line}: a cell in quotes begins here and does not end", path.display())]
    Unclosed {
        /// Which file.
        path: PathBuf,
        /// The line in which it begins, from 1.
        line: u64,
    },
}

impl RowsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RowsError::NotAFile(_) => Some("write its rows to a file first"),
            RowsError::Unclosed { .. } => Some("close the quote; within such a cell, double it"),
            _ => None,
        }
    }
}

/// The rows of a file, in order. Only one of them is in memory.
pub struct Rows {
    path: PathBuf,
    source: Source,
    next: u64,
    is_over: bool,
}

enum Source {
    Csv(csv::Records),
    Lines(lines::Lines),
    Array(array::Elements),
}

/// What is wrong, and in which line.
#[derive(Debug)]
pub(crate) enum Wrong {
    Io(std::io::Error),
    Line(u64, String),
    /// From that line on.
    Unclosed(u64),
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("path", &self.path).field("next", &self.next).finish()
    }
}

impl Rows {
    /// Opens a file; its name says how it is written.
    ///
    /// # Errors
    ///
    /// When the name says nothing, or the file cannot be opened, or its header is wrong.
    pub fn open(path: &Path) -> Result<Rows, RowsError> {
        // Looked at before it is opened: a pipe without a writer would be waited for.
        if std::fs::metadata(path).is_ok_and(|file| !file.is_file()) {
            return Err(RowsError::NotAFile(path.to_owned()));
        }
        let format =
            RowFormat::of(path).ok_or_else(|| RowsError::UnknownFormat(path.to_owned()))?;
        let file = File::open(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => RowsError::Missing(path.to_owned()),
            _ => RowsError::Io { path: path.to_owned(), source },
        })?;
        let file = BufReader::with_capacity(1 << 16, file);
        let source = match format {
            RowFormat::Csv => csv::Records::new(file).map(Source::Csv),
            RowFormat::JsonLines => Ok(Source::Lines(lines::Lines::new(file))),
            RowFormat::JsonArray => Ok(Source::Array(array::Elements::new(file))),
        };
        let source = source.map_err(|wrong| wrong.of(path))?;
        Ok(Rows { path: path.to_owned(), source, next: 0, is_over: false })
    }

    /// The columns of a file that has a header, also when no rows follow it.
    pub fn columns(&self) -> Option<&[String]> {
        match &self.source {
            Source::Csv(records) => Some(records.names()),
            Source::Lines(_) | Source::Array(_) => None,
        }
    }
}

impl Wrong {
    fn of(self, path: &Path) -> RowsError {
        let path = path.to_owned();
        match self {
            Wrong::Io(source) => RowsError::Io { path, source },
            Wrong::Line(line, message) => RowsError::Bad { path, line, message },
            Wrong::Unclosed(line) => RowsError::Unclosed { path, line },
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Row, RowsError>;

    /// Nothing comes after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let read = match &mut self.source {
            Source::Csv(records) => records.read(),
            Source::Lines(lines) => lines.read(),
            Source::Array(elements) => elements.read(),
        };
        match read {
            Ok(Some(Fields(fields))) => {
                let index = self.next;
                self.next += 1;
                Some(Ok(Row { index, fields }))
            }
            Ok(None) => {
                self.is_over = true;
                None
            }
            Err(wrong) => {
                self.is_over = true;
                Some(Err(wrong.of(&self.path)))
            }
        }
    }
}

/// The words of a JSON error without its place, which is one within the row.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests;
