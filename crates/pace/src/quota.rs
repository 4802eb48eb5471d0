//! Rate-limit information of a response, in one format for all providers.

use crate::Dimension;
use std::time::Duration;

/// One limit as described by response headers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaReading {
    /// The limited quantity.
    pub dimension: Dimension,
    /// The limit.
    pub limit: f64,
    /// The amount left when the request was admitted or rejected.
    pub remaining: f64,
    /// Time from the response until the full limit is available.
    pub reset: Option<Duration>,
    /// Whether the reset was given in whole seconds, which makes it up to one second too long.
    pub coarse: bool,
}

/// The rate-limit information of one response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quota {
    /// The limits that the headers describe.
    pub readings: Vec<QuotaReading>,
    /// Wait before the next request, as asked for by the provider; never zero.
    pub retry_after: Option<Duration>,
}
