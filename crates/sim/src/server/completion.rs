//! Time at which a reply is complete.

use super::ServerState;
use crate::BatchSlot;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Time at which a reply is complete. At a batching server, requests that arrive later move it.
#[derive(Debug)]
pub(super) struct ReplyCompletion {
    pub(super) app: ServerState,
    pub(super) start: Instant,
    pub(super) delay: Duration,
    pub(super) slot: Option<BatchSlot>,
}

impl ReplyCompletion {
    /// Returns whether the reply is complete at once.
    pub(super) fn is_immediate(&self) -> bool {
        self.delay.is_zero()
    }

    /// Waits for a share of the delay that was known at the start.
    pub(super) async fn wait_for_share(&self, share: f64) {
        sleep_until(self.start + self.delay.mul_f64(share)).await;
    }

    /// Waits until the reply is complete.
    pub(super) async fn wait(&self) {
        if self.is_immediate() {
            return;
        }
        sleep_until(self.start + self.delay).await;
        while let Some(left) = self.slot.and_then(|slot| self.app.time_left(slot)) {
            sleep(left).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batching, Config, Engine, Profile, SimRequest};
    use bakeoff_core::{Message, Request};
    use std::sync::Arc;
    use tokio::sync::watch;

    fn app(profile: Profile) -> ServerState {
        let engine = Arc::new(Engine::new(Config::default().profile(profile)));
        let (_, stop) = watch::channel(());
        ServerState { engine, start: Instant::now(), requests: Arc::default(), stop }
    }

    impl ReplyCompletion {
        /// Returns the completion of a reply with a fixed delay.
        pub(crate) fn after(delay: Duration) -> ReplyCompletion {
            let app = app(Profile::default());
            ReplyCompletion { start: app.start, app, delay, slot: None }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn batched_reply_waits_for_requests_that_arrive_later() {
        let batching = Some(Batching { base_ms: 1000.0, per_request_ms: 1000.0 });
        let app = app(Profile { batching, ..Profile::default() });
        let request = Request {
            model: "echo".to_owned(),
            messages: vec![Message::user("x")],
            ..Request::default()
        };
        let respond = || {
            let now = app.now();
            let reply =
                app.engine.respond(&SimRequest { request: &request, trial: 0, ordinal: 0, now });
            let (app, delay, slot) = (app.clone(), reply.delay, reply.slot);
            ReplyCompletion { app, start: Instant::now(), delay, slot }
        };
        let first = respond();
        sleep(Duration::from_secs(1)).await;
        let second = respond();
        first.wait().await;
        // Half of it at a third of the speed. Timers have a resolution of a millisecond.
        assert!((2500..2505).contains(&app.now().as_millis()), "{:?}", app.now());
        second.wait().await;
        assert!((3500..3510).contains(&app.now().as_millis()), "{:?}", app.now());
    }
}
