//! Errors of encoding and decoding.

use crate::failure::{Failure, truncate};
use crate::sse::SseError;

/// API key with bytes that a header must not have. The key is not shown, because it may be nearly valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("API key contains characters that are not allowed in an HTTP header")]
pub struct KeyError;

/// Error of decoding a complete response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body does not have the expected format.
    #[error("invalid response body: {problem}; it starts with {start:?}")]
    Malformed {
        /// Missing field or syntax error.
        problem: String,
        /// Start of the body, at most 200 characters.
        start: String,
    },
    /// The body contains an error object, although the status is a success.
    #[error(transparent)]
    Provider(Failure),
}

impl DecodeError {
    pub(crate) fn malformed(problem: impl Into<String>, body: &[u8]) -> Self {
        const MAX_START_CHARS: usize = 200;
        // A character has at most four bytes.
        let start = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_START_CHARS)]);
        DecodeError::Malformed {
            problem: problem.into(),
            start: truncate(&start, MAX_START_CHARS).to_owned(),
        }
    }
}

/// Error of decoding a streamed response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream does not consist of valid server-sent events.
    #[error(transparent)]
    Sse(#[from] SseError),
    /// The data of an event does not have the expected format.
    #[error("invalid stream event: {problem}; it starts with {start:?}")]
    Malformed {
        /// Missing field or syntax error.
        problem: String,
        /// Start of the data, at most 200 characters.
        start: String,
    },
    /// The provider sent an error event.
    #[error(transparent)]
    Provider(Failure),
    /// The stream ended before the response was complete.
    #[error("stream ended before the response was complete")]
    Truncated,
}

impl From<DecodeError> for StreamError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Malformed { problem, start } => StreamError::Malformed { problem, start },
            DecodeError::Provider(failure) => StreamError::Provider(failure),
        }
    }
}
