//! What a provider says about its limits, in one form for all of them.

use crate::Dimension;
use std::time::Duration;

/// One limit as a response's headers describe it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaReading {
    /// What is counted.
    pub dimension: Dimension,
    /// The most there can be.
    pub limit: f64,
    /// What was left when the request was admitted or rejected.
    pub remaining: f64,
    /// Time from the response until everything is there again.
    pub reset: Option<Duration>,
    /// The reset was given in whole seconds, so it is up to one second too long.
    pub coarse: bool,
}

/// Everything that one response says about limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quota {
    /// The limits.
    pub readings: Vec<QuotaReading>,
    /// How long to wait before the next request; never zero.
    pub retry_after: Option<Duration>,
}
