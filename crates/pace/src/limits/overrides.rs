//! Settings from elsewhere that win.

use super::{Connections, Limits};
use crate::Strategy;
use std::time::Duration;

/// What wins over a model's own [`Limits`]; what is not set leaves them as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LimitOverrides {
    /// By what it is decided when a request goes out.
    pub strategy: Option<Strategy>,
    /// Most requests in flight, or the bounds of `adaptive`.
    pub connections: Option<Connections>,
    /// Requests per minute.
    pub rpm: Option<u64>,
    /// Tokens of prompts and answers per minute.
    pub tpm: Option<u64>,
    /// Most retries of a call.
    pub max_retries: Option<u32>,
    /// Most time for a whole call.
    pub timeout: Option<Duration>,
    /// Most time for one attempt.
    pub attempt_timeout: Option<Duration>,
}

impl LimitOverrides {
    /// The limits that result. Another strategy takes over only what it has a use for: what was
    /// set for the old one was not set for it.
    pub fn apply(&self, own: Limits) -> Limits {
        let strategy = self.strategy.unwrap_or(own.strategy);
        let mut limits = own;
        if strategy != own.strategy {
            let rate = |rate: Option<u64>| rate.filter(|_| strategy.uses_rates());
            limits = Limits {
                strategy,
                // Bounds of a window are no number, and a bound is not a window's usual width.
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
            max_retries: self.max_retries.or(limits.max_retries),
            timeout: self.timeout.or(limits.timeout),
            attempt_timeout: self.attempt_timeout.or(limits.attempt_timeout),
            ..limits
        }
    }
}
