//! The history of a pool's limit.

use std::time::Duration;

/// Why a limit changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeReason {
    /// Everything goes well and nothing is known yet: fast growth.
    SlowStart,
    /// Everything goes well: slow growth.
    SteadyStateUp,
    /// The provider rejected a request.
    RateLimit,
    /// Somebody said so.
    Manual,
}

impl ChangeReason {
    /// The word for it in files.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeReason::SlowStart => "slow_start",
            ChangeReason::SteadyStateUp => "steady_state_up",
            ChangeReason::RateLimit => "rate_limit",
            ChangeReason::Manual => "manual",
        }
    }
}

/// The number of requests that may be in flight has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitChange {
    /// Time since the pool's start.
    pub at: Duration,
    /// Before.
    pub old_limit: u32,
    /// Afterwards.
    pub new_limit: u32,
    /// Why.
    pub reason: ChangeReason,
}
