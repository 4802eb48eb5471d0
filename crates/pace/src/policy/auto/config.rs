//! Configuration of `auto`.

/// Default maximum number of requests in flight.
const DEFAULT_CONNECTIONS: u32 = 1000;

/// The configuration of `auto`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AutoConfig {
    /// Maximum number of requests in flight.
    pub connections: u32,
    /// Handling of a positive `Retry-After`.
    pub retry_after: RetryAfter,
    /// Rates given by the user.
    pub rates: Rates,
    /// The limit that an earlier run learned.
    pub learned: Option<LearnedLimit>,
}

impl AutoConfig {
    /// Sets the maximum number of requests in flight.
    #[must_use]
    pub fn connections(mut self, connections: u32) -> AutoConfig {
        self.connections = connections;
        self
    }

    /// Sets the handling of a positive `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, retry_after: RetryAfter) -> AutoConfig {
        self.retry_after = retry_after;
        self
    }

    /// Sets rates given by the user.
    #[must_use]
    pub fn rates(mut self, rates: Rates) -> AutoConfig {
        self.rates = rates;
        self
    }

    /// Sets the limit that an earlier run learned.
    #[must_use]
    pub fn learned(mut self, learned: LearnedLimit) -> AutoConfig {
        self.learned = Some(learned);
        self
    }
}

impl Default for AutoConfig {
    fn default() -> Self {
        AutoConfig {
            connections: DEFAULT_CONNECTIONS,
            retry_after: RetryAfter::default(),
            rates: Rates::default(),
            learned: None,
        }
    }
}

/// Handling of a positive `Retry-After`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RetryAfter {
    /// Send nothing before.
    Strict,
    /// Let single requests test whether the wait is longer than necessary: at most one every five
    /// seconds and four per wait.
    #[default]
    Test,
}

/// Limits per minute.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Requests per minute.
    pub rpm: Option<f64>,
    /// Tokens of prompts and completions per minute.
    pub tpm: Option<f64>,
    /// Tokens of prompts per minute.
    pub itpm: Option<f64>,
    /// Tokens of completions per minute.
    pub otpm: Option<f64>,
}

/// A limit that a run detected, as a start for the next run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LearnedLimit {
    /// Maximum number of requests in flight.
    Cap(u32),
    /// Requests per second.
    Rate(f64),
}
