//! Rows from comma-separated values. The first record names the fields; every cell is a string.

use super::quotes::QuoteTracker;
use super::{RowFields, RowProblem};
use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};
use std::fs::File;
use std::io::BufReader;

/// Reader of the records of a CSV file.
pub(super) struct CsvRecords {
    reader: Reader<QuoteTracker<BufReader<File>>>,
    names: Vec<String>,
    record: StringRecord,
}

impl CsvRecords {
    /// Creates a reader and reads the header.
    pub(super) fn new(file: BufReader<File>) -> Result<CsvRecords, RowProblem> {
        let mut reader = ReaderBuilder::new().from_reader(QuoteTracker::new(file));
        let header = reader.headers().cloned();
        let header = check_quotes(&reader, header)?;
        let mut names: Vec<String> = Vec::new();
        for (index, name) in header.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(RowProblem::Line(1, format!("column {} has no name", index + 1)));
            }
            if names.iter().any(|other| other == name) {
                return Err(RowProblem::Line(1, format!("duplicate column `{name}`")));
            }
            names.push(name.to_owned());
        }
        Ok(CsvRecords { reader, names, record: StringRecord::new() })
    }

    /// Returns the names of the columns.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads the next row.
    pub(super) fn read(&mut self) -> Result<Option<RowFields>, RowProblem> {
        let read = self.reader.read_record(&mut self.record);
        if !check_quotes(&self.reader, read)? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        let mut fields = Vec::with_capacity(self.names.len());
        for (name, cell) in self.names.iter().zip(&self.record) {
            let value = serde_json::value::to_raw_value(cell)
                .map_err(|error| RowProblem::Line(line, error.to_string()))?;
            fields.push((name.clone(), value));
        }
        Ok(Some(RowFields(fields)))
    }
}

/// Converts the result of a read, and reports a quoted cell that extends to the end of the file.
fn check_quotes<T>(
    reader: &Reader<QuoteTracker<BufReader<File>>>,
    read: Result<T, csv::Error>,
) -> Result<T, RowProblem> {
    match reader.get_ref().unclosed_line(reader.position().byte()) {
        Some(line) => Err(RowProblem::Unclosed(line)),
        None => read.map_err(to_problem),
    }
}

fn to_problem(error: csv::Error) -> RowProblem {
    let line = error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        ErrorKind::Io(source) => RowProblem::Io(source),
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let values = if len == 1 { "value" } else { "values" };
            RowProblem::Line(line, format!("{len} {values}, but the header has {expected_len}"))
        }
        ErrorKind::Utf8 { .. } => RowProblem::Line(line, "not UTF-8 text".to_owned()),
        other => RowProblem::Line(line, format!("not CSV: {other:?}")),
    }
}
