//! Why an answer cannot be read.

use crate::failure::{Failure, cut};
use crate::sse::SseError;

/// The key has bytes that no header may have. It is not shown, for it may be most of a real key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the API key has characters that no HTTP header may have")]
pub struct KeyError;

/// Why a whole answer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is not what the format promises.
    #[error("the answer is not what the format promises: {problem}; it starts with {start:?}")]
    Malformed {
        /// What is missing or wrong.
        problem: String,
        /// The start of the body, at most 200 characters.
        start: String,
    },
    /// It is an error, sent as if it were an answer.
    #[error(transparent)]
    Provider(Failure),
}

impl DecodeError {
    pub(crate) fn malformed(problem: impl Into<String>, body: &[u8]) -> Self {
        const START_CHARS: usize = 200;
        // Four bytes is the longest character, so this is always enough.
        let start = String::from_utf8_lossy(&body[..body.len().min(4 * START_CHARS)]);
        DecodeError::Malformed {
            problem: problem.into(),
            start: cut(&start, START_CHARS).to_owned(),
        }
    }
}

/// Why a streamed answer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream is not server-sent events.
    #[error(transparent)]
    Sse(#[from] SseError),
    /// An event is not what the format promises.
    #[error(
        "the stream is not what the format promises: {problem}; the event starts with {start:?}"
    )]
    Malformed {
        /// What is missing or wrong.
        problem: String,
        /// The start of the event's data, at most 200 characters.
        start: String,
    },
    /// The provider broke off with an error.
    #[error(transparent)]
    Provider(Failure),
    /// The stream ended before the answer did.
    #[error("the stream ended before the answer did")]
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
