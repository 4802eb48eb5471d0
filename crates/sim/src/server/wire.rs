//! What two wire formats have in common.

use bakeoff_core::{Request, Response};
use serde_json::Value;

/// A format in which requests and answers travel.
pub(super) trait Wire: Send + Sync + 'static {
    /// The header that carries the request's id.
    const REQUEST_ID: &'static str;

    /// Reads a request's body; the error is a sentence for the client.
    fn read(body: &[u8]) -> Result<Call, String>;

    /// The body of an answer.
    fn answer(response: &Response, meta: &Meta) -> Value;

    /// The same answer as server-sent events, each with its blank line.
    fn events(response: &Response, meta: &Meta, call: &Call) -> Vec<String>;

    /// The body of an error.
    fn error(status: u16, code: &str, message: &str, request_id: &str) -> Value;
}

/// A request as it was read.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) request: Request,
    /// The stream ends with the usage.
    pub(super) include_usage: bool,
}

/// What an answer carries and the engine does not know.
#[derive(Debug)]
pub(super) struct Meta {
    /// Part of the answer's id.
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: u64,
}

/// Most pieces that a text is streamed in.
const MOST_PIECES: usize = 24;
/// Characters of the smallest piece.
const LEAST_PIECE: usize = 12;

/// A text in pieces of about equal length; none for an empty one.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    let size = (text.len() / MOST_PIECES + 1).max(LEAST_PIECE);
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        for text in ["", "a", "grüezi mitenand zäme", &"ä€😀".repeat(1000)] {
            let pieces = pieces(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() <= MOST_PIECES && pieces.iter().all(|piece| !piece.is_empty()));
        }
        assert_eq!(pieces("twenty-four characters!!").len(), 2);
    }
}
