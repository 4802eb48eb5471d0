//! Snapshots of a pool for progress displays and the feeder.

use crate::{BindingLimit, LimitChange};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The state of a pool at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// The model.
    pub model: Arc<str>,
    /// Requests in flight.
    pub in_flight: u32,
    /// The concurrency limit, as far as it is known; `u32::MAX` if there is none.
    pub limit: u32,
    /// Requests that wait for a permit.
    pub waiting: usize,
    /// Retries that wait for their time outside of the queue.
    pub backing_off: u32,
    /// Answers per second over about the last ten seconds.
    pub answers_per_second: f64,
    /// Answers so far.
    pub answered: u64,
    /// Rejections for rate reasons so far.
    pub rejected: u64,
    /// Transient failures so far: a 5xx, a timeout, a network error.
    pub failed: u64,
    /// Remaining time of a block that the provider announced.
    pub blocked_for: Option<Duration>,
    /// Whether the pool was paused from outside.
    pub is_paused: bool,
    /// Length of the outage of the provider so far. Single requests test whether it has recovered.
    pub outage: Option<Duration>,
    /// Time until the next request is sent, if the strategy delays it.
    pub next_in: Option<Duration>,
    /// The reason if the pool was stopped.
    pub stopped: Option<Arc<str>>,
    /// The limit that currently determines how fast requests are sent, if there is one.
    pub binding: Option<BindingLimit>,
}

impl PoolSnapshot {
    /// Creates the snapshot of an idle pool without a limit, for tests of code that shows pools.
    pub fn new(model: impl Into<Arc<str>>) -> PoolSnapshot {
        PoolSnapshot {
            model: model.into(),
            in_flight: 0,
            limit: u32::MAX,
            waiting: 0,
            backing_off: 0,
            answers_per_second: 0.0,
            answered: 0,
            rejected: 0,
            failed: 0,
            blocked_for: None,
            is_paused: false,
            outage: None,
            next_in: None,
            stopped: None,
            binding: None,
        }
    }
}

/// A change of a pool's concurrency limit.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolChange {
    /// The model of the pool.
    pub model: Arc<str>,
    /// The time of the change.
    pub time: SystemTime,
    /// Old limit, new limit and reason.
    pub change: LimitChange,
}
