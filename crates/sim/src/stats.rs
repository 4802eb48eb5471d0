//! Request counts of an engine.

use serde::Serialize;
use std::collections::BTreeMap;

/// Counts since the engine's start; the body of the server's `/stats`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// All requests.
    pub requests: u64,
    /// Requests with an answer.
    pub answered: u64,
    /// Requests with an invalid body.
    pub broken: u64,
    /// Requests with an error, by HTTP status.
    pub refused: BTreeMap<u16, u64>,
    /// Admitted requests whose answer is not complete.
    pub in_flight: u64,
    /// Maximum of `in_flight`.
    pub peak_in_flight: u64,
    /// Prompt tokens of all answers.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
}
