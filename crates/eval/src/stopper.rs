//! Stopping a run.

use tokio_util::sync::CancellationToken;

/// Stops a run, gracefully or immediately.
#[derive(Debug, Clone, Default)]
pub struct Stopper {
    pub(crate) stop: CancellationToken,
    pub(crate) abort: CancellationToken,
}

impl Stopper {
    /// Starts no new trials and lets running trials finish.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Starts no new trials and cancels running trials.
    pub fn abort(&self) {
        self.stop.cancel();
        self.abort.cancel();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }
}
