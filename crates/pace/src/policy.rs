//! What a strategy is: it is told what happens, and says whether the next request may go out.

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

use crate::{LimitChange, Quota, TokenCost};
use std::time::Duration;

/// One request on its way; the number of its permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flight(pub u64);

/// The pool as it is when a strategy is asked.
#[derive(Debug, Clone, Copy)]
pub struct PoolView {
    /// Time since the pool's start.
    pub now: Duration,
    /// Requests on their way.
    pub in_flight: u32,
    /// Requests that wait for a permit.
    pub waiting: usize,
}

/// Whether the next request may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Now.
    Open,
    /// Not before that time; asked again then, and at every event.
    Until(Duration),
    /// Not before something happens.
    Closed,
}

impl Gate {
    /// Open when both are; else the later time.
    #[must_use]
    pub fn and(self, other: Gate) -> Gate {
        match (self, other) {
            (Gate::Closed, _) | (_, Gate::Closed) => Gate::Closed,
            (Gate::Until(one), Gate::Until(two)) => Gate::Until(one.max(two)),
            (Gate::Open, other) | (other, Gate::Open) => other,
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum SendOutcome {
    /// It was answered.
    Answered {
        /// What the response said about limits.
        quota: Quota,
        /// What it really cost, where the provider said so.
        usage: Option<TokenCost>,
        /// No attempt of the same call failed before.
        clean: bool,
    },
    /// The provider said: too much, or too many at once.
    Rejected {
        /// What the response said about limits.
        quota: Quota,
    },
    /// Something broke that may work the next time: a 5xx, a timeout, the network.
    Failed,
    /// The provider is there and will not answer this request.
    Refused,
    /// Nobody waits for the answer any more.
    Dropped,
}

/// How a rejected request comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryMode {
    /// It goes to the front of the queue: the pool knows when it may go out.
    Queue,
    /// After the pause of the retry policy.
    Backoff,
    /// After exactly this time.
    After(Duration),
}

/// A strategy. Time is passed in, so that it runs as well in virtual time.
pub trait Policy: std::fmt::Debug + Send {
    /// Whether a request of that cost may go out now.
    fn gate(&mut self, view: PoolView, cost: TokenCost) -> Gate;

    /// A request goes out; it counts in `view.in_flight` already.
    fn on_sent(&mut self, view: PoolView, flight: Flight, cost: TokenCost);

    /// A request has ended; it does not count in `view.in_flight` any more.
    fn on_ended(&mut self, view: PoolView, flight: Flight, cost: TokenCost, ending: &SendOutcome);

    /// A request that was granted did not go out after all.
    fn on_withdrawn(&mut self, view: PoolView, flight: Flight, cost: TokenCost) {
        self.on_ended(view, flight, cost, &SendOutcome::Dropped);
    }

    /// How a request that was rejected now comes back.
    fn retry_mode(&self, now: Duration) -> RetryMode {
        let _ = now;
        RetryMode::Backoff
    }

    /// How many requests may be in flight, as far as this is known.
    fn limit(&self) -> u32;

    /// Until when nothing goes out because the provider said so, where it did.
    fn blocked_until(&self) -> Option<Duration> {
        None
    }

    /// What the next run on this pool should begin with.
    fn learned(&self) -> Option<LearnedLimit> {
        None
    }

    /// The changes of the limit since the last call.
    fn take_changes(&mut self) -> Vec<LimitChange> {
        Vec::new()
    }
}
