//! The interface of a strategy: it receives events and decides when the next request is sent.

mod adaptive;
mod auto;
mod fixed;
mod proactive;
mod reactive;

pub use adaptive::{AdaptiveConfig, AdaptiveConfigError, AdaptivePolicy};
pub use auto::{AutoConfig, AutoPolicy, LearnedLimit, Rates, RetryAfter};
pub use fixed::FixedPolicy;
pub use proactive::{ProactiveConfig, ProactiveConfigError, ProactivePolicy};
pub use reactive::ReactivePolicy;

use crate::{BindingLimit, LimitChange, Quota, TokenCost};
use std::time::Duration;

/// A request in flight, by the number of its permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flight(pub u64);

/// The state of a pool at the time of an event.
#[derive(Debug, Clone, Copy)]
pub struct PoolView {
    /// Time since the pool's start.
    pub now: Duration,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests that wait for a permit.
    pub waiting: usize,
}

/// Whether the next request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may be sent now.
    Open,
    /// Not before that time. The strategy is queried again then and at every event.
    Until(Duration),
    /// Not before the next event.
    Closed,
}

impl Gate {
    /// Combines two gates: open if both are, else the later time.
    #[must_use]
    pub fn and(self, other: Gate) -> Gate {
        match (self, other) {
            (Gate::Closed, _) | (_, Gate::Closed) => Gate::Closed,
            (Gate::Until(one), Gate::Until(two)) => Gate::Until(one.max(two)),
            (Gate::Open, other) | (other, Gate::Open) => other,
        }
    }
}

/// The outcome of one request.
#[derive(Debug, Clone, PartialEq)]
pub enum SendOutcome {
    /// The provider answered.
    Answered {
        /// The rate-limit headers of the response.
        quota: Quota,
        /// The actual cost, if the provider reports it.
        usage: Option<TokenCost>,
        /// Whether this was the first attempt of the call.
        clean: bool,
    },
    /// The provider rejected the request for rate reasons.
    Rejected {
        /// The rate-limit headers of the response.
        quota: Quota,
    },
    /// A transient failure: a 5xx, a timeout, a network error.
    Failed {
        /// Wait before the next request, as announced by the provider.
        retry_after: Option<Duration>,
    },
    /// A response that the provider is overloaded (503, 529). The scheduler passes it to strategies as a
    /// rejection if the provider sheds load, else as a failure.
    Overloaded {
        /// Wait before the next request, as announced by the provider.
        retry_after: Option<Duration>,
    },
    /// The provider responded with an error that is not about rates, such as an invalid request.
    Refused,
    /// The caller dropped the request.
    Dropped,
}

/// How a rejected request is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryMode {
    /// At the front of the queue, at once: the pool decides when to send it.
    Queue,
    /// After the pause of the retry policy.
    Backoff,
    /// After exactly this time.
    After(Duration),
}

/// A strategy. Time is passed in, so that it also runs in virtual time.
pub trait Policy: std::fmt::Debug + Send {
    /// Returns whether a request of that cost may be sent now.
    fn gate(&mut self, view: PoolView, cost: TokenCost) -> Gate;

    /// Handles the sending of a request, which `view.in_flight` already includes.
    fn on_sent(&mut self, view: PoolView, flight: Flight, cost: TokenCost);

    /// Handles the end of a request, which `view.in_flight` no longer includes.
    fn on_ended(&mut self, view: PoolView, flight: Flight, cost: TokenCost, outcome: &SendOutcome);

    /// Handles a grant that was taken back because its request was not sent.
    fn on_withdrawn(&mut self, view: PoolView, flight: Flight, cost: TokenCost) {
        self.on_ended(view, flight, cost, &SendOutcome::Dropped);
    }

    /// Returns how a request that is rejected now is retried.
    fn retry_mode(&self, now: Duration) -> RetryMode {
        let _ = now;
        RetryMode::Backoff
    }

    /// Returns the concurrency limit, as far as it is known.
    fn limit(&self) -> u32;

    /// Handles the start of an outage: measurements across it say nothing about limits.
    fn on_outage(&mut self) {}

    /// Handles the discovery that earlier failures were rejections because of load: measurements so far say
    /// nothing about limits.
    fn on_shedding(&mut self) {}

    /// Returns how waits are handled that the provider announces during an outage.
    fn retry_after(&self) -> RetryAfter {
        RetryAfter::Test
    }

    /// Changes the maximum number of requests in flight while the pool is in use.
    fn set_max_connections(&mut self, max: u32);

    /// Changes the requests per minute while the pool is in use. Returns whether the strategy has such a
    /// limit.
    fn set_rpm(&mut self, now: Duration, rpm: u64) -> bool {
        let _ = (now, rpm);
        false
    }

    /// Returns the limit that currently determines how fast requests are sent, if there is one.
    fn binding(&self) -> Option<BindingLimit> {
        None
    }

    /// Returns the end of a block that the provider announced.
    fn blocked_until(&self) -> Option<Duration> {
        None
    }

    /// Returns the limit that the next run on this pool should start with, if this run has confirmed
    /// it under load.
    fn learned(&self) -> Option<LearnedLimit> {
        None
    }

    /// Returns the changes of the limit since the last call.
    fn take_changes(&mut self) -> Vec<LimitChange> {
        Vec::new()
    }
}
