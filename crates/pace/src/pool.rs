//! Pools and permits: the [`Scheduler`](crate::Scheduler) with a clock, waiting tasks and a timer.
//!
//! The scheduler makes all decisions, behind a lock that is never held across an `await`. A permit is
//! sent to its waiter through a channel after the lock is released. A permit that is not received is
//! dropped with the channel, which returns it to the pool.

mod latency;
mod meter;
mod permit;
mod pools;
mod shared;
mod snapshot;
#[cfg(test)]
mod tests;
mod timer;

pub use latency::MIN_STALL_TIMEOUT;
pub use permit::Permit;
pub use pools::{PoolKey, Pools};
pub use snapshot::{PoolChange, PoolSnapshot};

use crate::{
    LearnedLimit, LimitTuning, Limits, LimitsError, PermitRequest, Policy, PoolLoad, RetryMode,
    Scheduler, TokenCost,
};
use bakeoff_core::ErrorKind;
use shared::{AcquireResult, SharedPool};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Grants permits as its strategy allows. Clones share the same pool.
///
/// ```
/// use bakeoff_pace::{Limits, PermitRequest, Pool, SendOutcome};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let pool = Pool::new("some-model", Limits::fixed(10))?;
/// let permit = pool.acquire(PermitRequest::default()).await?;
/// assert_eq!(pool.snapshot().in_flight, 1);
/// permit.end(SendOutcome::Failed { retry_after: None });
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

    /// Waits for a permit. Dropping the future cancels the request. A delayed retry is part of the
    /// queue from the start: it ends with the pool, and the recovery of the provider may shorten it.
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
    pub fn stop(&self, stopped: PoolStopped) {
        self.shared.stop(stopped);
    }

    /// Changes the limits while the pool is in use. Requests in flight are not affected.
    pub fn tune(&self, tuning: LimitTuning) {
        self.shared.tune(tuning);
    }

    /// Notifies whenever the pool could serve more requests than there are: its queue is empty. The pool
    /// does not keep the object alive.
    pub fn notify_when_hungry(&self, notify: &Arc<Notify>) {
        self.shared.with(|state| state.when_hungry.push(Arc::downgrade(notify)));
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

    /// Records the latency of an answer, for [`Pool::stall_timeout`]. `timeouts` is the number of earlier
    /// requests of the same call that timed out.
    pub fn record_latency(&self, latency: Duration, timeouts: u32) {
        self.shared.record_latency(latency, timeouts);
    }

    /// Records that a request timed out, after `timeouts` earlier ones of the same call.
    pub fn record_timeout(&self, timeouts: u32) {
        self.shared.record_timeout(timeouts);
    }

    /// Returns the number of calls of which a request has timed out.
    pub fn timeouts(&self) -> u32 {
        self.shared.timeouts()
    }

    /// Returns the time after which a request without an answer has probably stalled, given the
    /// latencies so far; `None` while there are none. If the call has only `left`, it is
    /// shorter, so that there is time for a second request. After more `timeouts` of the same call than
    /// chance explains it is longer, because the call may just be slow.
    pub fn stall_timeout(&self, left: Duration, timeouts: u32) -> Option<Duration> {
        self.shared.stall_timeout(left, timeouts)
    }

    /// Returns how long the provider has been down: it fails, and single requests test whether it has
    /// recovered.
    pub fn outage(&self) -> Option<Duration> {
        self.shared.outage()
    }

    /// Returns the time since the first rejection or failure after the last answer.
    pub fn failing_for(&self) -> Option<Duration> {
        self.shared.failing_for()
    }

    /// Whether the provider has answered a request.
    pub fn has_answered(&self) -> bool {
        self.shared.has_answered()
    }

    /// Whether the provider has responded to any request, with an answer or with an error that is not
    /// transient.
    pub fn has_responded(&self) -> bool {
        self.shared.has_responded()
    }

    /// Returns the number of retries that wait for their time outside of the queue.
    pub fn backing_off(&self) -> u32 {
        self.shared.with(|state| delayed(&state.scheduler))
    }
}

/// Returns the number of delayed retries.
fn delayed(scheduler: &Scheduler) -> u32 {
    u32::try_from(scheduler.delayed()).unwrap_or(u32::MAX)
}

/// The error of requests to a stopped pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PoolStopped {
    /// The kind of error with which calls end.
    pub kind: ErrorKind,
    /// The reason why it was stopped.
    pub reason: Arc<str>,
}

impl PoolStopped {
    /// Creates the error for a kind and a reason.
    pub fn new(kind: ErrorKind, reason: impl Into<Arc<str>>) -> PoolStopped {
        PoolStopped { kind, reason: reason.into() }
    }
}
