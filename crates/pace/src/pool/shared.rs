//! The state shared by the clones of a pool, its permits and its waiters.

use super::latency::AnswerLatencies;
use super::meter::Meter;
use super::permit::{Permit, PermitWaiter};
use super::timer::Timer;
use super::{PoolChange, PoolSnapshot, PoolStopped, delayed};
use crate::{
    Flight, LearnedLimit, LimitTuning, PermitRequest, Policy, PoolLoad, RetryMode, Scheduler,
    SendOutcome, Ticket,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct SharedPool {
    model: Arc<str>,
    /// Time zero of the scheduler, on both clocks.
    started: Instant,
    started_at: SystemTime,
    stopped: OnceLock<PoolStopped>,
    state: Mutex<SharedState>,
}

#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) scheduler: Scheduler,
    waiters: HashMap<Ticket, oneshot::Sender<Permit>>,
    meter: Meter,
    latencies: AnswerLatencies,
    pub(super) timer: Timer,
    /// Notified when the queue is empty.
    pub(super) when_hungry: Vec<Weak<Notify>>,
}

/// The result of a request for a permit.
pub(super) enum AcquireResult {
    Granted(Permit),
    Waiting(PermitWaiter),
}

/// Granted permits and their waiters. They are delivered after the lock is released, because an
/// undelivered permit returns to the pool at once, which takes the lock.
type Grants = Vec<(Option<oneshot::Sender<Permit>>, Permit)>;

fn deliver(grants: Grants) {
    for (waiter, permit) in grants {
        // If the waiter is gone, dropping the permit returns it.
        if let Some(waiter) = waiter {
            drop(waiter.send(permit));
        }
    }
}

impl SharedPool {
    pub(super) fn new(model: &str, policy: Box<dyn Policy>) -> SharedPool {
        SharedPool {
            model: model.into(),
            started: Instant::now(),
            started_at: SystemTime::now(),
            stopped: OnceLock::new(),
            state: Mutex::new(SharedState {
                scheduler: Scheduler::new(policy),
                waiters: HashMap::new(),
                meter: Meter::default(),
                latencies: AnswerLatencies::default(),
                timer: Timer::default(),
                when_hungry: Vec::new(),
            }),
        }
    }

    /// Locks the state. A poisoned lock is safe to use: only the strategy could panic while it is
    /// held, and the scheduler stays consistent around each call of it.
    fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time. It is read with the lock held, so that the scheduler never sees it decrease.
    fn now(&self, _state: &MutexGuard<'_, SharedState>) -> Duration {
        self.started.elapsed()
    }

    /// Converts a time of the scheduler.
    pub(super) fn instant(&self, time: Duration) -> Option<Instant> {
        self.started.checked_add(time)
    }

    pub(super) fn request(
        self: &Arc<Self>,
        request: PermitRequest,
    ) -> Result<AcquireResult, PoolStopped> {
        let mut state = self.lock();
        if let Some(stopped) = self.stopped() {
            return Err(stopped);
        }
        let now = self.now(&state);
        let ticket = state.scheduler.on_request(now, request);
        let (own, grants) = self.tick(&mut state, now, Some(ticket));
        let result = match own {
            Some(permit) => AcquireResult::Granted(permit.into_held()),
            None => {
                let (sender, receiver) = oneshot::channel();
                state.waiters.insert(ticket, sender);
                AcquireResult::Waiting(PermitWaiter::new(Arc::clone(self), ticket, receiver))
            }
        };
        drop(state);
        deliver(grants);
        Ok(result)
    }

    /// Applies a change to the state, then grants what the strategy allows.
    fn change<T>(self: &Arc<Self>, act: impl FnOnce(&mut SharedState, Duration) -> T) -> T {
        let mut state = self.lock();
        let now = self.now(&state);
        let result = act(&mut state, now);
        let (_, grants) = self.tick(&mut state, now, None);
        drop(state);
        deliver(grants);
        result
    }

    /// Grants what the strategy allows. The permit of `own`, which has no channel yet, is returned
    /// separately.
    fn tick(
        self: &Arc<Self>,
        state: &mut SharedState,
        now: Duration,
        own: Option<Ticket>,
    ) -> (Option<Permit>, Grants) {
        let SharedState { scheduler, waiters, timer, when_hungry, .. } = state;
        let (mut mine, mut grants) = (None, Grants::new());
        let mut in_flight = scheduler.in_flight();
        scheduler.on_tick(now, |ticket, flight| {
            in_flight += 1;
            let permit = Permit::new(Arc::clone(self), flight, in_flight);
            if own == Some(ticket) {
                mine = Some(permit);
            } else {
                grants.push((waiters.remove(&ticket), permit));
            }
        });
        if let Some(at) = scheduler.wake_at() {
            timer.wake_at(at, self);
        }
        if scheduler.waiting() == 0 {
            when_hungry.retain(|notify| {
                let notify = notify.upgrade();
                notify.inspect(|notify| notify.notify_one()).is_some()
            });
        }
        (mine, grants)
    }

    /// Handles the expiry of the timer.
    pub(super) fn on_timer(self: &Arc<Self>) {
        self.change(|_, _| {});
    }

    /// Accesses the state without granting permits afterwards.
    pub(super) fn with<T>(&self, access: impl FnOnce(&mut SharedState) -> T) -> T {
        access(&mut self.lock())
    }

    pub(super) fn cancel(self: &Arc<Self>, ticket: Ticket) {
        self.change(|state, _| {
            state.waiters.remove(&ticket);
            state.scheduler.on_cancel(ticket);
        });
    }

    pub(super) fn end(self: &Arc<Self>, flight: Flight, outcome: &SendOutcome) -> bool {
        self.change(|state, now| {
            let is_rejected = state.scheduler.on_end(now, flight, outcome);
            state.meter.count(now, outcome, is_rejected);
            is_rejected
        })
    }

    pub(super) fn withdraw(self: &Arc<Self>, flight: Flight) {
        self.change(|state, now| state.scheduler.on_withdraw(now, flight));
    }

    pub(super) fn tune(self: &Arc<Self>, tuning: LimitTuning) {
        self.change(|state, now| state.scheduler.tune(now, tuning));
    }

    pub(super) fn stop(&self, stopped: PoolStopped) {
        let waiters = {
            let mut state = self.lock();
            let stopped = self.stopped.get_or_init(|| stopped);
            state.scheduler.stop(stopped.reason.to_string());
            std::mem::take(&mut state.waiters)
        };
        // Dropping the senders wakes the waiting tasks.
        drop(waiters);
    }

    pub(super) fn stopped(&self) -> Option<PoolStopped> {
        self.stopped.get().cloned()
    }

    pub(super) fn retry_mode(&self) -> RetryMode {
        let state = self.lock();
        state.scheduler.retry_mode(self.now(&state))
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn limit(&self) -> u32 {
        self.lock().scheduler.limit()
    }

    pub(super) fn load(&self) -> PoolLoad {
        let state = self.lock();
        PoolLoad {
            limit: state.scheduler.limit(),
            in_flight: state.scheduler.in_flight(),
            backing_off: delayed(&state.scheduler),
        }
    }

    pub(super) fn learned(&self) -> Option<LearnedLimit> {
        self.lock().scheduler.learned()
    }

    pub(super) fn mean_output(&self) -> u64 {
        self.lock().meter.mean_output()
    }

    pub(super) fn record_latency(&self, latency: Duration, timeouts: u32) {
        self.lock().latencies.add(latency, timeouts);
    }

    pub(super) fn record_timeout(&self, timeouts: u32) {
        self.lock().latencies.add_timeout(timeouts);
    }

    pub(super) fn timeouts(&self) -> u32 {
        self.lock().latencies.timeouts()
    }

    pub(super) fn stall_timeout(&self, left: Duration, timeouts: u32) -> Option<Duration> {
        self.lock().latencies.stall_timeout(left, timeouts)
    }

    pub(super) fn outage(&self) -> Option<Duration> {
        let state = self.lock();
        Some(self.now(&state).saturating_sub(state.scheduler.outage_since()?))
    }

    pub(super) fn failing_for(&self) -> Option<Duration> {
        let state = self.lock();
        Some(self.now(&state).saturating_sub(state.meter.failing_since?))
    }

    pub(super) fn has_answered(&self) -> bool {
        self.lock().meter.answered > 0
    }

    pub(super) fn has_responded(&self) -> bool {
        self.lock().meter.has_responded
    }

    pub(super) fn snapshot(&self) -> PoolSnapshot {
        let state = self.lock();
        let now = self.now(&state);
        let scheduler = &state.scheduler;
        let left = |time: Duration| time.checked_sub(now).filter(|left| !left.is_zero());
        PoolSnapshot {
            model: Arc::clone(&self.model),
            in_flight: scheduler.in_flight(),
            limit: scheduler.limit(),
            waiting: scheduler.waiting(),
            backing_off: delayed(&state.scheduler),
            answers_per_second: state.meter.answers_per_second(now),
            answered: state.meter.answered,
            rejected: state.meter.rejected,
            failed: state.meter.failed,
            blocked_for: scheduler.blocked_until().and_then(left),
            is_paused: scheduler.is_paused(),
            outage: scheduler.outage_since().map(|since| now.saturating_sub(since)),
            next_in: scheduler.wake_at().and_then(left),
            stopped: self.stopped.get().map(|stopped| Arc::clone(&stopped.reason)),
            binding: scheduler.binding(),
        }
    }

    pub(super) fn take_changes(&self) -> Vec<PoolChange> {
        let changes = self.lock().scheduler.take_changes();
        changes
            .into_iter()
            .map(|change| PoolChange {
                model: Arc::clone(&self.model),
                time: self.started_at + change.at,
                change,
            })
            .collect()
    }
}
