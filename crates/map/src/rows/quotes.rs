//! A reader that tracks the quotes of a CSV file.

use bakeoff_core::CsvQuotes;
use std::io::{self, Read};

/// A pass-through reader that tracks whether its position is within a quoted cell.
pub(super) struct QuoteTracker<R> {
    inner: R,
    quotes: CsvQuotes,
}

impl<R> QuoteTracker<R> {
    /// Wraps a reader.
    pub(super) fn new(inner: R) -> QuoteTracker<R> {
        QuoteTracker { inner, quotes: CsvQuotes::default() }
    }

    /// Returns the line in which an unclosed cell starts, if the parser has consumed all bytes (`up_to`).
    pub(super) fn unclosed_line(&self, up_to: u64) -> Option<u64> {
        self.quotes.unclosed_line().filter(|_| up_to >= self.quotes.bytes())
    }
}

impl<R: Read> Read for QuoteTracker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.quotes.track(&buffer[..length]);
        Ok(length)
    }
}
