//! Rows from a JSON array of objects. The file is split at the commas of the outermost level, and each
//! element is parsed on its own.

use super::{RowFields, RowProblem, json_message};
use std::fs::File;
use std::io::{BufReader, Read};

/// Reader of the elements of a JSON array.
pub(super) struct JsonArray {
    bytes: std::io::Bytes<BufReader<File>>,
    element: Vec<u8>,
    line: u64,
    state: ArrayState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrayState {
    /// Before the opening bracket.
    Start,
    /// Directly after the opening bracket.
    First,
    /// After a comma.
    Next,
    /// After the closing bracket.
    End,
}

/// Character after an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delimiter {
    Comma,
    Bracket,
}

impl JsonArray {
    /// Creates a reader at the start of a file.
    pub(super) fn new(file: BufReader<File>) -> JsonArray {
        JsonArray { bytes: file.bytes(), element: Vec::new(), line: 1, state: ArrayState::Start }
    }

    /// Reads the next row.
    pub(super) fn read(&mut self) -> Result<Option<RowFields>, RowProblem> {
        if self.state == ArrayState::Start && !self.read_open_bracket()? {
            return Ok(None);
        }
        if self.state == ArrayState::End {
            return self.expect_end();
        }
        let Some(first) = self.next_visible()? else { return Err(self.unclosed()) };
        if first == b']' {
            return match self.state {
                ArrayState::First => {
                    self.state = ArrayState::End;
                    self.expect_end()
                }
                _ => Err(RowProblem::Line(self.line, "trailing comma in the array".to_owned())),
            };
        }
        let line = self.line;
        self.element.clear();
        self.element.push(first);
        let delimiter = self.read_element(first)?;
        self.state = if delimiter == Delimiter::Comma { ArrayState::Next } else { ArrayState::End };
        let fields = serde_json::from_slice(&self.element).map_err(|error| {
            RowProblem::Line(line, format!("row is not a JSON object: {}", json_message(&error)))
        })?;
        Ok(Some(fields))
    }

    /// Reads the opening bracket. Returns `false` if the file is empty.
    fn read_open_bracket(&mut self) -> Result<bool, RowProblem> {
        let mut first = self.next_byte()?;
        // UTF-8 byte order mark.
        if first == Some(0xef) && self.next_byte()? == Some(0xbb) && self.next_byte()? == Some(0xbf)
        {
            first = self.next_byte()?;
        }
        while first.is_some_and(|byte| byte.is_ascii_whitespace()) {
            first = self.next_byte()?;
        }
        match first {
            Some(b'[') => {
                self.state = ArrayState::First;
                Ok(true)
            }
            Some(_) => {
                let message = "not a JSON array of rows; JSON lines need the extension .jsonl";
                Err(RowProblem::Line(self.line, message.to_owned()))
            }
            None => {
                self.state = ArrayState::End;
                Ok(false)
            }
        }
    }

    /// Reads the rest of an element and the delimiter after it.
    fn read_element(&mut self, first: u8) -> Result<Delimiter, RowProblem> {
        let mut depth = usize::from(matches!(first, b'{' | b'['));
        let mut in_string = first == b'"';
        let mut is_escaped = false;
        loop {
            let Some(byte) = self.next_byte()? else { return Err(self.unclosed()) };
            if in_string {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' => is_escaped = true,
                    b'"' => in_string = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => in_string = true,
                    b'{' | b'[' => depth += 1,
                    b',' if depth == 0 => return Ok(Delimiter::Comma),
                    b']' if depth == 0 => return Ok(Delimiter::Bracket),
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            self.element.push(byte);
        }
    }

    fn expect_end(&mut self) -> Result<Option<RowFields>, RowProblem> {
        match self.next_visible()? {
            None => Ok(None),
            Some(_) => {
                Err(RowProblem::Line(self.line, "unexpected text after the array".to_owned()))
            }
        }
    }

    fn unclosed(&self) -> RowProblem {
        RowProblem::Line(self.line, "unclosed array".to_owned())
    }

    /// Returns the next byte that is not white space.
    fn next_visible(&mut self) -> Result<Option<u8>, RowProblem> {
        loop {
            match self.next_byte()? {
                Some(byte) if byte.is_ascii_whitespace() => {}
                other => return Ok(other),
            }
        }
    }

    fn next_byte(&mut self) -> Result<Option<u8>, RowProblem> {
        let byte = self.bytes.next().transpose().map_err(RowProblem::Io)?;
        if byte == Some(b'\n') {
            self.line += 1;
        }
        Ok(byte)
    }
}
