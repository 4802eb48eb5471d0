//! How a pool is doing, for whoever watches.

use super::shared::SharedPool;
use crate::LimitChange;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

/// How a pool is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// Which model it is for.
    pub model: Arc<str>,
    /// Requests on their way.
    pub in_flight: u32,
    /// How many may be, as far as this is known; the largest number where there is no limit.
    pub limit: u32,
    /// Requests that wait for a permit.
    pub waiting: usize,
    /// Calls that wait for their next attempt outside of the queue.
    pub backing_off: u32,
    /// Over the last ten seconds or so.
    pub answers_per_second: f64,
    /// Answers so far.
    pub answered: u64,
    /// Rejections so far: too much, or too many at once.
    pub rejected: u64,
    /// Failures so far: a 5xx, a timeout, the network.
    pub failed: u64,
    /// For how long nothing goes out because the provider said so.
    pub blocked_for: Option<Duration>,
    /// When the next request goes out, where its strategy makes it wait for a time.
    pub next_in: Option<Duration>,
    /// Nothing goes out any more, for this reason.
    pub stopped: Option<Arc<str>>,
}

/// The limit of a pool has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolChange {
    /// Which model the pool is for.
    pub model: Arc<str>,
    /// When.
    pub time: SystemTime,
    /// From what to what, and why.
    pub change: LimitChange,
}

/// A call that waits for its next attempt outside of the queue.
#[derive(Debug)]
pub struct BackoffGuard(Arc<SharedPool>);

impl BackoffGuard {
    pub(super) fn new(shared: Arc<SharedPool>) -> BackoffGuard {
        shared.backing_off.fetch_add(1, Ordering::Relaxed);
        BackoffGuard(shared)
    }
}

impl Drop for BackoffGuard {
    fn drop(&mut self) {
        self.0.backing_off.fetch_sub(1, Ordering::Relaxed);
    }
}
