//! What an engine has done so far.

use serde::Serialize;
use std::collections::BTreeMap;

/// Counts since the engine's start; the contents of the server's `/stats`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Everything that was asked.
    pub requests: u64,
    /// Requests that got an answer.
    pub answered: u64,
    /// Requests that got a body that cannot be read.
    pub broken: u64,
    /// Requests that got an error, by its HTTP status.
    pub refused: BTreeMap<u16, u64>,
    /// Admitted requests whose answer is not complete yet.
    pub in_flight: u64,
    /// The most there ever were of those.
    pub peak_in_flight: u64,
    /// Prompt tokens of all answers.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
}
