//! Pools and permits: the [`Scheduler`] with a clock, tasks that wait, and a timer.
//!
//! Everything that is decided is decided by the scheduler, behind a lock that is never held while
//! anything waits. A permit travels to its waiter through a channel, after the lock is free; one
//! that nobody takes out of it goes back by being dropped.

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

/// Grants permits as its strategy allows. Clones share one pool.
///
/// ```
/// use bakeoff_pace::{PermitRequest, SendOutcome, Limits, Pool};
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
    /// A pool for that model.
    pub fn new(model: &str, limits: Limits) -> Result<Pool, LimitsError> {
        Pool::with_learned(model, limits, None)
    }

    /// A pool about which an earlier run has found something out.
    pub fn with_learned(
        model: &str,
        limits: Limits,
        learned: Option<LearnedLimit>,
    ) -> Result<Pool, LimitsError> {
        Ok(Pool::with_policy(model, limits.policy(learned)?))
    }

    /// A pool with a strategy of one's own.
    pub fn with_policy(model: &str, policy: Box<dyn Policy>) -> Pool {
        Pool { shared: Arc::new(SharedPool::new(model, policy)) }
    }

    /// Whether both are the same pool.
    pub fn ptr_eq(&self, other: &Pool) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Which model it is for.
    pub fn model(&self) -> &str {
        self.shared.model()
    }

    /// Waits for its turn. Dropping the future leaves no trace.
    ///
    /// # Errors
    ///
    /// When the pool has been stopped, before or while it waits.
    pub async fn acquire(&self, ask: PermitRequest) -> Result<Permit, PoolStopped> {
        match self.shared.ask(ask)? {
            AcquireResult::Granted(permit) => Ok(permit),
            AcquireResult::Waiting(waiting) => waiting.granted().await,
        }
    }

    /// How a request that was rejected now comes back.
    pub fn retry_mode(&self) -> RetryMode {
        self.shared.retry_mode()
    }

    /// Ends everything: who waits is answered at once, and nothing is ever granted again. The first
    /// reason counts.
    pub fn stop(&self, reason: impl Into<Arc<str>>) {
        self.shared.stop(reason.into());
    }

    /// Why nothing is granted any more.
    pub fn stopped(&self) -> Option<PoolStopped> {
        self.shared.stopped()
    }

    /// How the pool is doing.
    pub fn snapshot(&self) -> PoolSnapshot {
        self.shared.snapshot()
    }

    /// Returns the part of the snapshot that a [`Feeder`](crate::Feeder) needs.
    pub fn load(&self) -> PoolLoad {
        self.shared.load()
    }

    /// How many requests may be in flight, as far as this is known.
    pub fn limit(&self) -> u32 {
        self.shared.limit()
    }

    /// The changes of the limit since the last call.
    pub fn take_changes(&self) -> Vec<PoolChange> {
        self.shared.take_changes()
    }

    /// What the next run on this pool should begin with.
    pub fn learned(&self) -> Option<LearnedLimit> {
        self.shared.learned()
    }

    /// What a request with a prompt of so many tokens will probably cost: its answer is as long as
    /// the others were, if it may be.
    pub fn estimate(&self, input: u64, most_output: Option<u64>) -> TokenCost {
        let usual = self.shared.usual_output();
        TokenCost { input, output: most_output.map_or(usual, |most| most.min(usual)) }
    }

    /// A call waits for its next attempt, outside of the queue, until this is dropped.
    pub fn back_off(&self) -> BackoffGuard {
        BackoffGuard::new(Arc::clone(&self.shared))
    }

    /// Calls that wait for their next attempt outside of the queue.
    pub fn backing_off(&self) -> u32 {
        self.shared.backing_off()
    }
}

/// The pool was stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PoolStopped {
    /// Why.
    pub reason: Arc<str>,
}
