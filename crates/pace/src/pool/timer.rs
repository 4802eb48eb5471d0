//! The timer of a pool: a task that sleeps until the scheduler has to be called again.

use super::shared::SharedPool;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The timer of a pool. Access is guarded by the pool's lock.
#[derive(Debug, Default)]
pub(super) struct Timer {
    /// When the task will wake, possibly too early but never too late.
    set_for: Option<Duration>,
    /// Notified when the task has to wake earlier, and when the pool is dropped.
    wakeup: Arc<Notify>,
    task: Option<AbortHandle>,
}

impl Timer {
    /// Ensures that the pool is woken at that time.
    pub(super) fn wake_at(&mut self, at: Duration, pool: &Arc<SharedPool>) {
        // The task ends with its runtime, which the pool may outlive.
        if self.task.as_ref().is_some_and(|task| !task.is_finished()) {
            if self.set_for.is_none_or(|set_for| at < set_for) {
                self.set_for = Some(at);
                self.wakeup.notify_one();
            }
        } else if let Ok(runtime) = Handle::try_current() {
            let task = run_timer(Arc::downgrade(pool), Arc::clone(&self.wakeup));
            self.set_for = Some(at);
            self.task = Some(runtime.spawn(task).abort_handle());
        }
    }

    /// Records until when the task sleeps.
    fn set(&mut self, at: Option<Duration>) -> Option<Duration> {
        self.set_for = at;
        at
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.wakeup.notify_one();
    }
}

/// Runs the timer. It does not keep the pool alive and ends with it.
async fn run_timer(pool: Weak<SharedPool>, wakeup: Arc<Notify>) {
    loop {
        let until = {
            let Some(pool) = pool.upgrade() else { return };
            let at = pool.with(|state| {
                let wake_at = state.scheduler.wake_at();
                state.timer.set(wake_at)
            });
            at.and_then(|at| pool.instant(at))
        };
        match until {
            Some(until) => tokio::select! {
                () = wakeup.notified() => continue,
                () = tokio::time::sleep_until(until) => {}
            },
            None => {
                wakeup.notified().await;
                continue;
            }
        }
        let Some(pool) = pool.upgrade() else { return };
        pool.on_timer();
    }
}
