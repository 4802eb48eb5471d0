//! Result of a probe: the limit, and the reason of an early end.

/// Limit of a model, as found by a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitFinding {
    /// No request was rejected.
    NotReached {
        /// Highest number of requests in flight that was tried.
        connections: u32,
    },
    /// The number of requests in flight is limited.
    Cap {
        /// Maximum number of requests in flight.
        connections: f64,
    },
    /// The number of requests per time is limited.
    Rate {
        /// Maximum number of requests per second.
        per_second: f64,
    },
    /// Both are limited.
    RateAndCap {
        /// Maximum number of requests per second.
        per_second: f64,
        /// Maximum number of requests in flight.
        connections: f64,
    },
    /// No request was rejected, but more requests in flight only increase the latency.
    Knee {
        /// Number of requests in flight from which the latency increases.
        connections: f64,
    },
    /// The limit was not determined.
    Unknown,
}

impl LimitFinding {
    /// Returns the limit with a rate of at most `max_rate` requests per second.
    pub(super) fn at_most(mut self, max_rate: f64) -> LimitFinding {
        if let LimitFinding::Rate { per_second } | LimitFinding::RateAndCap { per_second, .. } =
            &mut self
        {
            *per_second = per_second.min(max_rate);
        }
        self
    }
}

/// Reason why a probe ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeStop {
    /// The maximum number of requests was reached.
    Requests,
    /// The maximum duration was reached.
    Time,
    /// The maximum cost was reached.
    Cost,
    /// Every request was rejected.
    AllRejected,
    /// Most requests failed for reasons other than a limit.
    Failures,
    /// A quota is exhausted.
    Quota,
    /// [`super::ProbeConfig::stop`] was cancelled.
    Interrupted,
}
