//! Detection of unclosed quotes in CSV. The parser accepts them and takes everything after a stray quote
//! as one cell.

use super::BYTE_ORDER_MARK;
use std::io::{self, Read};

/// A pass-through reader that tracks whether its position is within a quoted cell.
pub(super) struct QuoteTracker<R> {
    inner: R,
    state: QuoteState,
    /// Number of bytes read.
    bytes: u64,
    line: u64,
    /// Line in which the last quoted cell starts.
    open_line: u64,
}

/// Position within a record, with the same distinctions as the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    /// At the start of a cell. Only there does a quote open a quoted cell.
    Start,
    /// Within an unquoted cell.
    Plain,
    /// Within a quoted cell.
    Quoted,
    /// After a quote within a quoted cell. It ends the cell unless another quote follows.
    Quote,
}

impl<R> QuoteTracker<R> {
    /// Wraps a reader.
    pub(super) fn new(inner: R) -> QuoteTracker<R> {
        QuoteTracker { inner, state: QuoteState::Start, bytes: 0, line: 1, open_line: 0 }
    }

    /// Returns the line in which an unclosed cell starts, if the parser has consumed all bytes (`up_to`).
    pub(super) fn unclosed_line(&self, up_to: u64) -> Option<u64> {
        (self.state == QuoteState::Quoted && up_to >= self.bytes).then_some(self.open_line)
    }

    fn track(&mut self, bytes: &[u8]) {
        for (offset, byte) in bytes.iter().enumerate() {
            let position = self.bytes + offset as u64;
            if BYTE_ORDER_MARK.get(position as usize) == Some(byte)
                && self.state == QuoteState::Start
            {
                continue;
            }
            self.state = match (self.state, byte) {
                (QuoteState::Quoted, b'"') => QuoteState::Quote,
                (QuoteState::Quoted, _) => QuoteState::Quoted,
                (QuoteState::Start, b'"') => {
                    self.open_line = self.line;
                    QuoteState::Quoted
                }
                (QuoteState::Quote, b'"') => QuoteState::Quoted,
                (_, b',' | b'\n' | b'\r') => QuoteState::Start,
                _ => QuoteState::Plain,
            };
            self.line += u64::from(*byte == b'\n');
        }
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for QuoteTracker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.track(&buffer[..length]);
        Ok(length)
    }
}
