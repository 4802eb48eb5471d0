//! Pools and permits: the [`Scheduler`](crate::Scheduler) with a clock, waiting tasks and a timer.
//!
//! The scheduler makes all decisions, behind a lock that is never held across an `await`. A permit is
//! sent to its waiter through a channel after the lock is released. A permit that is not received is
//! dropped with the channel, which returns it to the pool.

mod meter;
mod permit;
mod pools;
mod shared;
mod snapshot;
#[cfg(test)]
mod tests;
mod timer;

pub use permit::Permit;
pub use pools::{PoolKey, Pools};
pub use snapshot::{BackoffGuard, PoolChange, PoolSnapshot};

use crate::{
    LearnedLimit, Limits, LimitsError, PermitRequest, Policy, PoolLoad, RetryMode, TokenCost,
};
use shared::{AcquireResult, SharedPool};
use std::sync::Arc;

/// Grants permits as its strategy allows. Clones share the same pool.
///
/// ```
/// use bakeoff_pace::{Limits, PermitRequest, Pool, SendOutcome};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let pool = Pool::new("some-model", Limits::fixed(10))?;
/// let permit = pool.acquire(PermitRequest::default()).await?;
/// assert_eq!(pool.snapshot().in_flight, 1);
/// permit.end(SendOutcome::Failed);
/// assert_eq!(pool.snapshot().in_flight, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<SharedPool>,
}

impl Pool {
    /// Creates a pool for a model.
    pub fn new(model: &str, limits: Limits) -> Result<Pool, LimitsError> {
        Pool::with_learned(model, limits, None)
    }

    /// Creates a pool that starts with the limit that an earlier run learned.
    pub fn with_learned(
        model: &str,
        limits: Limits,
        learned: Option<LearnedLimit>,
    ) -> Result<Pool, LimitsError> {
        Ok(Pool::with_policy(model, limits.policy(learned)?))
    }

    /// Creates a pool with a custom strategy.
    pub fn with_policy(model: &str, policy: Box<dyn Policy>) -> Pool {
        Pool { shared: Arc::new(SharedPool::new(model, policy)) }
    }

    /// Returns whether both handles refer to the same pool.
    pub fn ptr_eq(&self, other: &Pool) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        self.shared.model()
    }

    /// Waits for a permit. Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// If the pool is stopped before or during the wait.
    pub async fn acquire(&self, request: PermitRequest) -> Result<Permit, PoolStopped> {
        match self.shared.request(request)? {
            AcquireResult::Granted(permit) => Ok(permit),
            AcquireResult::Waiting(waiting) => waiting.granted().await,
        }
    }

    /// Returns how a request that is rejected now is retried.
    pub fn retry_mode(&self) -> RetryMode {
        self.shared.retry_mode()
    }

    /// Stops the pool: all waiting requests fail at once, and nothing more is granted. Later calls do
    /// not change the reason.
    pub fn stop(&self, reason: impl Into<Arc<str>>) {
        self.shared.stop(reason.into());
    }

    /// Returns the reason if the pool was stopped.
    pub fn stopped(&self) -> Option<PoolStopped> {
        self.shared.stopped()
    }

    /// Returns the current state of the pool.
    pub fn snapshot(&self) -> PoolSnapshot {
        self.shared.snapshot()
    }

    /// Returns the part of the snapshot that a [`Feeder`](crate::Feeder) needs.
    pub fn load(&self) -> PoolLoad {
        self.shared.load()
    }

    /// Returns the concurrency limit, as far as it is known.
    pub fn limit(&self) -> u32 {
        self.shared.limit()
    }

    /// Returns the changes of the limit since the last call.
    pub fn take_changes(&self) -> Vec<PoolChange> {
        self.shared.take_changes()
    }

    /// Returns the limit that the next run on this pool should start with.
    pub fn learned(&self) -> Option<LearnedLimit> {
        self.shared.learned()
    }

    /// Estimates the cost of a request with that many prompt tokens. The completion is assumed to have
    /// the mean length of earlier ones, capped at `max_output`.
    pub fn estimate(&self, input: u64, max_output: Option<u64>) -> TokenCost {
        let mean = self.shared.mean_output();
        TokenCost { input, output: max_output.map_or(mean, |max| max.min(mean)) }
    }

    /// Counts a call as backing off, outside of the queue, until the guard is dropped.
    pub fn back_off(&self) -> BackoffGuard {
        BackoffGuard::new(Arc::clone(&self.shared))
    }

    /// Returns the number of calls that are backing off outside of the queue.
    pub fn backing_off(&self) -> u32 {
        self.shared.backing_off()
    }
}

/// The error of requests to a stopped pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PoolStopped {
    /// The reason why it was stopped.
    pub reason: Arc<str>,
}
