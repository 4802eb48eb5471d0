//! The objects of one JSON array, cut out of the file one after the other: what lies between two
//! commas at the outermost level. Whether each of them is JSON is for its own reading to say.

use super::{Fields, Wrong, words};
use std::fs::File;
use std::io::{BufReader, Read};

pub(super) struct Elements {
    bytes: std::io::Bytes<BufReader<File>>,
    element: Vec<u8>,
    line: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the bracket.
    Start,
    /// After the bracket, before anything else.
    First,
    /// After a comma.
    Next,
    /// Behind the last bracket.
    End,
}

/// What ended an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Comma,
    Bracket,
}

impl Elements {
    pub(super) fn new(file: BufReader<File>) -> Elements {
        Elements { bytes: file.bytes(), element: Vec::new(), line: 1, state: State::Start }
    }

    pub(super) fn read(&mut self) -> Result<Option<Fields>, Wrong> {
        if self.state == State::Start && !self.open()? {
            return Ok(None);
        }
        if self.state == State::End {
            return self.nothing_more();
        }
        let Some(first) = self.visible()? else { return Err(self.unfinished()) };
        if first == b']' {
            return match self.state {
                State::First => {
                    self.state = State::End;
                    self.nothing_more()
                }
                _ => Err(Wrong::Line(self.line, "a comma without a row after it".to_owned())),
            };
        }
        let line = self.line;
        self.element.clear();
        self.element.push(first);
        let ended = self.rest_of_element(first)?;
        self.state = if ended == Ended::Comma { State::Next } else { State::End };
        let fields = serde_json::from_slice(&self.element).map_err(|error| {
            Wrong::Line(line, format!("a row that is not a JSON object: {}", words(&error)))
        })?;
        Ok(Some(fields))
    }

    /// Goes behind the bracket; whether there is anything at all.
    fn open(&mut self) -> Result<bool, Wrong> {
        let mut first = self.byte()?;
        // What some editors put before everything else.
        if first == Some(0xef) && self.byte()? == Some(0xbb) && self.byte()? == Some(0xbf) {
            first = self.byte()?;
        }
        while first.is_some_and(|byte| byte.is_ascii_whitespace()) {
            first = self.byte()?;
        }
        match first {
            Some(b'[') => {
                self.state = State::First;
                Ok(true)
            }
            Some(_) => {
                let message = "not a JSON array of rows; is it JSON lines (.jsonl)?";
                Err(Wrong::Line(self.line, message.to_owned()))
            }
            // An empty file has no rows.
            None => {
                self.state = State::End;
                Ok(false)
            }
        }
    }

    /// Reads up to the comma or bracket behind the element.
    fn rest_of_element(&mut self, first: u8) -> Result<Ended, Wrong> {
        let mut depth = usize::from(matches!(first, b'{' | b'['));
        let mut in_string = first == b'"';
        let mut is_escaped = false;
        loop {
            let Some(byte) = self.byte()? else { return Err(self.unfinished()) };
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
                    b',' if depth == 0 => return Ok(Ended::Comma),
                    b']' if depth == 0 => return Ok(Ended::Bracket),
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            self.element.push(byte);
        }
    }

    fn nothing_more(&mut self) -> Result<Option<Fields>, Wrong> {
        match self.visible()? {
            None => Ok(None),
            Some(_) => Err(Wrong::Line(self.line, "something after the array".to_owned())),
        }
    }

    fn unfinished(&self) -> Wrong {
        Wrong::Line(self.line, "the array is not closed".to_owned())
    }

    /// The next byte that is not white space.
    fn visible(&mut self) -> Result<Option<u8>, Wrong> {
        loop {
            match self.byte()? {
                Some(byte) if byte.is_ascii_whitespace() => {}
                other => return Ok(other),
            }
        }
    }

    fn byte(&mut self) -> Result<Option<u8>, Wrong> {
        let byte = self.bytes.next().transpose().map_err(Wrong::Io)?;
        if byte == Some(b'\n') {
            self.line += 1;
        }
        Ok(byte)
    }
}
