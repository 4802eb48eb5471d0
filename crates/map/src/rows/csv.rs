//! Comma-separated values; the first record names the fields, and every cell is a string.

use super::quotes::Quotes;
use super::{Fields, Wrong};
use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};
use std::fs::File;
use std::io::BufReader;

pub(super) struct Records {
    reader: Reader<Quotes<BufReader<File>>>,
    names: Vec<String>,
    record: StringRecord,
}

impl Records {
    pub(super) fn new(file: BufReader<File>) -> Result<Records, Wrong> {
        let mut reader = ReaderBuilder::new().from_reader(Quotes::new(file));
        let header = reader.headers().cloned();
        let header = checked(&reader, header)?;
        let mut names: Vec<String> = Vec::new();
        for (place, name) in header.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(Wrong::Line(1, format!("column {} has no name", place + 1)));
            }
            if names.iter().any(|other| other == name) {
                return Err(Wrong::Line(1, format!("the column `{name}` comes twice")));
            }
            names.push(name.to_owned());
        }
        Ok(Records { reader, names, record: StringRecord::new() })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn read(&mut self) -> Result<Option<Fields>, Wrong> {
        let read = self.reader.read_record(&mut self.record);
        if !checked(&self.reader, read)? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        let mut fields = Vec::with_capacity(self.names.len());
        for (name, cell) in self.names.iter().zip(&self.record) {
            let value = serde_json::value::to_raw_value(cell)
                .map_err(|error| Wrong::Line(line, error.to_string()))?;
            fields.push((name.clone(), value));
        }
        Ok(Some(Fields(fields)))
    }
}

/// What was read, unless it is a cell that takes the rest of the file.
fn checked<T>(
    reader: &Reader<Quotes<BufReader<File>>>,
    read: Result<T, csv::Error>,
) -> Result<T, Wrong> {
    match reader.get_ref().unclosed(reader.position().byte()) {
        Some(line) => Err(Wrong::Unclosed(line)),
        None => read.map_err(wrong),
    }
}

fn wrong(error: csv::Error) -> Wrong {
    let line = error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        ErrorKind::Io(source) => Wrong::Io(source),
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            Wrong::Line(line, format!("{len} cells, but the header has {expected_len}"))
        }
        ErrorKind::Utf8 { .. } => Wrong::Line(line, "not UTF-8 text".to_owned()),
        other => Wrong::Line(line, format!("not CSV: {other:?}")),
    }
}
