//! What `auto` is told before the first request.

/// Most requests in flight when nobody says otherwise.
const DEFAULT_CONNECTIONS: u32 = 400;

/// What is known before the first request.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoConfig {
    /// Most requests in flight.
    pub connections: u32,
    /// What a positive Retry-After means.
    pub retry_after: RetryAfter,
    /// Limits that the user knows.
    pub rates: Rates,
    /// What an earlier run found out.
    pub learned: Option<LearnedLimit>,
}

impl Default for AutoConfig {
    fn default() -> Self {
        AutoConfig {
            connections: DEFAULT_CONNECTIONS,
            retry_after: RetryAfter::Strict,
            rates: Rates::default(),
            learned: None,
        }
    }
}

/// What a positive Retry-After means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RetryAfter {
    /// Nothing goes out before.
    #[default]
    Strict,
    /// A single request may find out whether it is longer than need be.
    Test,
}

/// Limits per minute.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Requests.
    pub rpm: Option<f64>,
    /// Tokens of prompts and answers.
    pub tpm: Option<f64>,
    /// Tokens of prompts.
    pub itpm: Option<f64>,
    /// Tokens of answers.
    pub otpm: Option<f64>,
}

/// What a run found out about a pool, for the next one to begin with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LearnedLimit {
    /// So many in flight.
    Cap(u32),
    /// So many requests per second.
    Rate(f64),
}
