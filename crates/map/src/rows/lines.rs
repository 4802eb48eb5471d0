//! Rows from JSON lines: one object per line. Empty lines are skipped.

use super::{BYTE_ORDER_MARK, RowFields, RowProblem, json_message};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Reader of the lines of a JSON lines file.
pub(super) struct JsonLines {
    file: BufReader<File>,
    buffer: Vec<u8>,
    line: u64,
}

impl JsonLines {
    /// Creates a reader at the start of a file.
    pub(super) fn new(file: BufReader<File>) -> JsonLines {
        JsonLines { file, buffer: Vec::new(), line: 0 }
    }

    /// Reads the next row.
    pub(super) fn read(&mut self) -> Result<Option<RowFields>, RowProblem> {
        loop {
            self.buffer.clear();
            if self.file.read_until(b'\n', &mut self.buffer).map_err(RowProblem::Io)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let mut line = self.buffer.as_slice();
            if self.line == 1 {
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let fields = serde_json::from_slice(line).map_err(|error| {
                RowProblem::Line(self.line, format!("not a JSON object: {}", json_message(&error)))
            })?;
            return Ok(Some(fields));
        }
    }
}
