//! JSON lines: an object per line; empty lines are passed over.

use super::{Fields, Wrong, words};
use std::fs::File;
use std::io::{BufRead, BufReader};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct Lines {
    file: BufReader<File>,
    buffer: Vec<u8>,
    line: u64,
}

impl Lines {
    pub(super) fn new(file: BufReader<File>) -> Lines {
        Lines { file, buffer: Vec::new(), line: 0 }
    }

    pub(super) fn read(&mut self) -> Result<Option<Fields>, Wrong> {
        loop {
            self.buffer.clear();
            if self.file.read_until(b'\n', &mut self.buffer).map_err(Wrong::Io)? == 0 {
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
                Wrong::Line(self.line, format!("not a JSON object: {}", words(&error)))
            })?;
            return Ok(Some(fields));
        }
    }
}
