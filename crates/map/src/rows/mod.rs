//! Reading rows one at a time from CSV, JSON lines or a JSON array.

mod array;
mod csv;
mod lines;
mod quotes;

use crate::row::{Row, RowFields};
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

/// UTF-8 byte order mark, which some editors put at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// File format of rows.
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
    /// Returns the format for a file extension; `None` if it is unknown.
    pub fn from_path(path: &Path) -> Option<RowFormat> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(RowFormat::Csv),
            "jsonl" | "ndjson" => Some(RowFormat::JsonLines),
            "json" => Some(RowFormat::JsonArray),
            _ => None,
        }
    }
}

/// Reason why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The file extension is unknown.
    #[error("unsupported input format: {}", .0.display())]
    UnknownFormat(PathBuf),
    /// The input is a pipe, a folder or a device.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file does not exist.
    #[error("no such file: {}", .0.display())]
    Missing(PathBuf),
    /// The file cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A row is invalid.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The problem.
        message: String,
    },
    /// A quoted cell is not closed.
    #[error("{}:{line}: unclosed quote", path.display())]
    Unclosed {
        /// The file.
        path: PathBuf,
        /// The line in which the cell starts, from 1.
        line: u64,
    },
}

impl RowsError {
    /// Returns a hint on how to fix the error.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RowsError::UnknownFormat(_) => Some("use a .csv, .jsonl, .ndjson or .json file"),
            RowsError::NotAFile(_) => Some("rows are read more than once; write them to a file"),
            RowsError::Unclosed { .. } => Some("close the cell; write a quote within it twice"),
            _ => None,
        }
    }
}

/// Iterator over the rows of a file. It holds one row in memory.
pub struct Rows {
    path: PathBuf,
    source: RowSource,
    next: u64,
    is_at_end: bool,
}

enum RowSource {
    Csv(csv::CsvRecords),
    Lines(lines::JsonLines),
    Array(array::JsonArray),
}

/// Problem with a row, without the path of the file.
#[derive(Debug)]
enum RowProblem {
    Io(std::io::Error),
    /// A line and what is wrong with it.
    Line(u64, String),
    /// The line in which an unclosed cell starts.
    Unclosed(u64),
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("path", &self.path).field("next", &self.next).finish()
    }
}

impl Rows {
    /// Opens a file. Its extension determines the format.
    ///
    /// # Errors
    ///
    /// Fails if the extension is unknown, the file cannot be opened, or its header is invalid.
    pub fn open(path: &Path) -> Result<Rows, RowsError> {
        // Checked before opening, because opening a pipe without a writer blocks.
        if std::fs::metadata(path).is_ok_and(|file| !file.is_file()) {
            return Err(RowsError::NotAFile(path.to_owned()));
        }
        let format =
            RowFormat::from_path(path).ok_or_else(|| RowsError::UnknownFormat(path.to_owned()))?;
        let file = File::open(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => RowsError::Missing(path.to_owned()),
            _ => RowsError::Io { path: path.to_owned(), source },
        })?;
        let file = BufReader::with_capacity(1 << 16, file);
        let source = match format {
            RowFormat::Csv => csv::CsvRecords::new(file).map(RowSource::Csv),
            RowFormat::JsonLines => Ok(RowSource::Lines(lines::JsonLines::new(file))),
            RowFormat::JsonArray => Ok(RowSource::Array(array::JsonArray::new(file))),
        };
        let source = source.map_err(|problem| problem.into_error(path))?;
        Ok(Rows { path: path.to_owned(), source, next: 0, is_at_end: false })
    }

    /// Returns the columns if the format has a header, even without rows.
    pub fn columns(&self) -> Option<&[String]> {
        match &self.source {
            RowSource::Csv(records) => Some(records.names()),
            RowSource::Lines(_) | RowSource::Array(_) => None,
        }
    }
}

impl RowProblem {
    fn into_error(self, path: &Path) -> RowsError {
        let path = path.to_owned();
        match self {
            RowProblem::Io(source) => RowsError::Io { path, source },
            RowProblem::Line(line, message) => RowsError::Invalid { path, line, message },
            RowProblem::Unclosed(line) => RowsError::Unclosed { path, line },
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Row, RowsError>;

    /// Returns the next row. After an error the iterator ends.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end {
            return None;
        }
        let read = match &mut self.source {
            RowSource::Csv(records) => records.read(),
            RowSource::Lines(lines) => lines.read(),
            RowSource::Array(elements) => elements.read(),
        };
        match read {
            Ok(Some(RowFields(fields))) => {
                let index = self.next;
                self.next += 1;
                Some(Ok(Row { index, fields }))
            }
            Ok(None) => {
                self.is_at_end = true;
                None
            }
            Err(problem) => {
                self.is_at_end = true;
                Some(Err(problem.into_error(&self.path)))
            }
        }
    }
}

/// Returns the message of a JSON error without its position, which is relative to the row.
fn json_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests;
