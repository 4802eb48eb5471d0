//! Overrides of a model's limits, as given on the command line.

use super::{Connections, Limits};
use crate::{RetryAfter, Strategy};
use std::time::Duration;

/// Values that replace those of a model's own [`Limits`]; unset fields change nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct LimitOverrides {
    /// The rate-limiting strategy.
    pub strategy: Option<Strategy>,
    /// Maximum number of requests in flight, or the bounds of `adaptive`.
    pub connections: Option<Connections>,
    /// Requests per minute.
    pub rpm: Option<u64>,
    /// Tokens of prompts and completions per minute.
    pub tpm: Option<u64>,
    /// Handling of a positive `Retry-After`, for models with the strategy `auto`.
    pub retry_after: Option<RetryAfter>,
    /// Maximum number of retries of a call.
    pub max_retries: Option<u32>,
    /// Time limit for a call.
    pub timeout: Option<Duration>,
    /// Time limit for one attempt.
    pub attempt_timeout: Option<Duration>,
}

impl LimitOverrides {
    /// Returns the resulting limits. If the strategy changes, only the settings that the new one
    /// uses are kept.
    pub fn apply(&self, own: Limits) -> Limits {
        let strategy = self.strategy.unwrap_or(own.strategy);
        let mut limits = own;
        if strategy != own.strategy {
            let rate = |rate: Option<u64>| rate.filter(|_| strategy.uses_rates());
            limits = Limits {
                strategy,
                // A range fits no other strategy, and a maximum is not a constant for `fixed`.
                connections: own.connections.filter(|connections| {
                    matches!(connections, Connections::Max(_)) && strategy != Strategy::Fixed
                }),
                rpm: rate(own.rpm),
                tpm: rate(own.tpm),
                itpm: rate(own.itpm),
                otpm: rate(own.otpm),
                max_retries: own.max_retries,
                timeout: own.timeout,
                attempt_timeout: own.attempt_timeout,
                ..Limits::default()
            };
        }
        Limits {
            connections: self.connections.or(limits.connections),
            rpm: self.rpm.or(limits.rpm),
            tpm: self.tpm.or(limits.tpm),
            retry_after: self
                .retry_after
                .filter(|_| strategy == Strategy::Auto)
                .or(limits.retry_after),
            max_retries: self.max_retries.or(limits.max_retries),
            timeout: self.timeout.or(limits.timeout),
            attempt_timeout: self.attempt_timeout.or(limits.attempt_timeout),
            ..limits
        }
    }
}
