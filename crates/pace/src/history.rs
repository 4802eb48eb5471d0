//! Changes of a pool's concurrency limit.

use crate::BindingLimit;
use std::time::Duration;

/// The reason for a change of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeReason {
    /// Fast growth before the first rejection.
    SlowStart,
    /// Slow growth after the first rejection.
    SteadyStateUp,
    /// The provider rejected a request.
    RateLimit,
    /// Latency has changed, or throughput no longer grows with the limit.
    Latency,
    /// Set from outside.
    Manual,
}

impl ChangeReason {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeReason::SlowStart => "slow_start",
            ChangeReason::SteadyStateUp => "steady_state_up",
            ChangeReason::RateLimit => "rate_limit",
            ChangeReason::Latency => "latency",
            ChangeReason::Manual => "manual",
        }
    }
}

/// A change of the concurrency limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitChange {
    /// Time since the pool's start.
    pub at: Duration,
    /// The limit before the change.
    pub old_limit: u32,
    /// The limit after the change.
    pub new_limit: u32,
    /// The reason.
    pub reason: ChangeReason,
    /// The requests per minute that were set, if a rate was.
    pub rpm: Option<u64>,
    /// What determined how fast requests were sent then, if it is known.
    pub binding: Option<BindingLimit>,
}
