//! Interface shared by the two wire formats.

use bakeoff_core::{Request, Response};
use serde_json::Value;

/// ApiFormat format of requests and answers.
pub(super) trait ApiFormat: Send + Sync + 'static {
    /// Header with the request's id.
    const REQUEST_ID_HEADER: &'static str;

    /// Parses a request body; the error is a message for the client.
    fn parse(body: &[u8]) -> Result<ParsedRequest, String>;

    /// Returns the body of an answer.
    fn answer(response: &Response, meta: &ResponseMeta) -> Value;

    /// Returns the same answer as server-sent events, each with its blank line.
    fn events(response: &Response, meta: &ResponseMeta, call: &ParsedRequest) -> Vec<String>;

    /// Returns the body of an error.
    fn error(status: u16, code: &str, message: &str, request_id: &str) -> Value;
}

/// A parsed request.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) request: Request,
    /// Whether the stream ends with the usage.
    pub(super) include_usage: bool,
}

/// Fields of an answer that the engine does not provide.
#[derive(Debug)]
pub(super) struct ResponseMeta {
    /// Answer id without the format's prefix.
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: u64,
}

/// Maximum number of pieces of a streamed text.
const MAX_PIECES: usize = 24;
/// Minimum length of a piece in bytes.
const MIN_PIECE_BYTES: usize = 12;

/// Splits a text into pieces of about equal length; none for an empty text.
pub(super) fn split_pieces(text: &str) -> Vec<&str> {
    let size = (text.len() / MAX_PIECES + 1).max(MIN_PIECE_BYTES);
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
    fn pieces_concatenate_to_the_text() {
        for text in ["", "a", "grüezi mitenand zäme", &"ä€😀".repeat(1000)] {
            let pieces = split_pieces(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() <= MAX_PIECES && pieces.iter().all(|piece| !piece.is_empty()));
        }
        assert_eq!(split_pieces("twenty-four characters!!").len(), 2);
    }
}
