//! Watches quotes while CSV is read: whether a cell is still open at the end of a file, which the
//! parser does not tell. It takes everything after a stray quote for one cell.

use std::io::{self, Read};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A reader that passes everything on, and knows whether it is within a cell in quotes.
pub(super) struct Quotes<R> {
    inner: R,
    state: State,
    /// Bytes that went through.
    bytes: u64,
    line: u64,
    /// The line in which the last cell in quotes began.
    opened: u64,
}

/// Where in a record the next byte stands; the same distinctions as the parser's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a cell, the only place where a quote opens one.
    Start,
    Plain,
    Quoted,
    /// After a quote within quotes: it ends the cell, unless another one follows.
    Quote,
}

impl<R> Quotes<R> {
    pub(super) fn new(inner: R) -> Quotes<R> {
        Quotes { inner, state: State::Start, bytes: 0, line: 1, opened: 0 }
    }

    /// Where the cell begins that is still open after everything up to that byte.
    pub(super) fn unclosed(&self, up_to: u64) -> Option<u64> {
        (self.state == State::Quoted && up_to >= self.bytes).then_some(self.opened)
    }

    fn watch(&mut self, bytes: &[u8]) {
        for (offset, byte) in bytes.iter().enumerate() {
            let place = self.bytes + offset as u64;
            if BYTE_ORDER_MARK.get(place as usize) == Some(byte) && self.state == State::Start {
                continue;
            }
            self.state = match (self.state, byte) {
                (State::Quoted, b'"') => State::Quote,
                (State::Quoted, _) => State::Quoted,
                (State::Start, b'"') => {
                    self.opened = self.line;
                    State::Quoted
                }
                (State::Quote, b'"') => State::Quoted,
                (_, b',' | b'\n' | b'\r') => State::Start,
                _ => State::Plain,
            };
            self.line += u64::from(*byte == b'\n');
        }
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.watch(&buffer[..length]);
        Ok(length)
    }
}
