//! Detection of unclosed quotes in CSV. The parser accepts them and takes everything after a stray quote as one
//! cell, so rows would be lost.

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Position within the quotes of a CSV file, which is passed in pieces.
///
/// ```
/// let mut quotes = bakeoff_core::CsvQuotes::default();
/// quotes.track(b"id,text\n1,\"two\nlines\"\n");
/// assert_eq!(quotes.unclosed_line(), None);
/// quotes.track(b"2,\"open\n3,lost\n");
/// assert_eq!(quotes.unclosed_line(), Some(4));
/// ```
#[derive(Debug, Default)]
pub struct CsvQuotes {
    state: QuoteState,
    bytes: u64,
    /// Number of line ends so far.
    lines: u64,
    /// Lines before the one in which the last quoted cell starts.
    open_line: u64,
}

/// Position within a record, with the same distinctions as the parser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum QuoteState {
    /// At the start of a cell. Only there does a quote open a quoted cell.
    #[default]
    Start,
    /// Within an unquoted cell.
    Plain,
    /// Within a quoted cell.
    Quoted,
    /// After a quote within a quoted cell. It ends the cell unless another quote follows.
    Quote,
}

impl CsvQuotes {
    /// Handles the next bytes of the file.
    pub fn track(&mut self, bytes: &[u8]) {
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
                    self.open_line = self.lines;
                    QuoteState::Quoted
                }
                (QuoteState::Quote, b'"') => QuoteState::Quoted,
                (_, b',' | b'\n' | b'\r') => QuoteState::Start,
                _ => QuoteState::Plain,
            };
            self.lines += u64::from(*byte == b'\n');
        }
        self.bytes += bytes.len() as u64;
    }

    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the line, from 1, in which a quoted cell starts that has not ended.
    pub fn unclosed_line(&self) -> Option<u64> {
        (self.state == QuoteState::Quoted).then_some(self.open_line + 1)
    }
}
