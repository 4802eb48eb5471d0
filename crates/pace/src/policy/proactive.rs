//! `proactive`: never more in a minute than the limits that were given.
//!
//! Nothing goes out that would put more into any 60 seconds than a limit allows, so that there is
//! nothing to reject. With a `burst` requests are spread over the minute as well: so many may go out
//! at once, and then one for each that has become old enough. Requests count from when they are
//! sent. Tokens are reserved by the estimate and corrected when the request ends, which may open the
//! gate or keep it shut for longer.

mod config;
#[cfg(test)]
mod tests;
mod window;

pub use config::{ProactiveConfig, ProactiveConfigError};

use crate::{Dimension, Flight, Gate, Policy, PoolView, SendOutcome, TokenCost};
use std::time::Duration;
use window::SlidingWindow;

/// The strategy.
#[derive(Debug, Clone)]
pub struct ProactivePolicy {
    /// What a minute may hold.
    limits: Vec<(Dimension, u64)>,
    connections: u32,
    /// So many requests in so much time, at the rate of the minute.
    burst: Option<(u32, Duration)>,
    window: SlidingWindow,
}

impl ProactivePolicy {
    /// With nothing sent so far. [`ProactiveConfig::check`] tells what is wrong with a
    /// configuration; here a limit of zero lets one request through per minute, as every limit
    /// that is smaller than a request does, and without limits there is no pacing.
    pub fn new(config: ProactiveConfig) -> ProactivePolicy {
        ProactivePolicy {
            limits: config.limits().map(|(dimension, _, limit)| (dimension, limit)).collect(),
            connections: config.connections.map_or(u32::MAX, |connections| connections.max(1)),
            burst: config.burst.zip(config.rpm).map(|(burst, rpm)| {
                let seconds = 60.0 * f64::from(burst.max(1)) / rpm.max(1) as f64;
                // A minute's window knows nothing older.
                (burst.max(1), Duration::from_secs_f64(seconds.min(60.0)))
            }),
            window: SlidingWindow::default(),
        }
    }

    /// The tokens of the last minute: what was used, or the estimate where that is not known.
    pub fn used(&mut self, now: Duration) -> TokenCost {
        self.window.advance(now);
        self.window.used()
    }
}

impl Policy for ProactivePolicy {
    fn gate(&mut self, view: PoolView, cost: TokenCost) -> Gate {
        if view.in_flight >= self.connections {
            return Gate::Closed;
        }
        self.window.advance(view.now);
        let spaced = match self.burst {
            Some((burst, length)) => match self.window.spaced(burst, length) {
                Gate::Until(time) if time <= view.now => Gate::Open,
                gate => gate,
            },
            None => Gate::Open,
        };
        self.limits.iter().fold(spaced, |gate, (dimension, limit)| {
            gate.and(self.window.gate(*dimension, *limit, cost))
        })
    }

    fn on_sent(&mut self, view: PoolView, flight: Flight, cost: TokenCost) {
        self.window.push(view.now, flight, cost);
    }

    fn on_ended(
        &mut self,
        _view: PoolView,
        flight: Flight,
        _cost: TokenCost,
        ending: &SendOutcome,
    ) {
        match ending {
            SendOutcome::Answered { usage: Some(usage), .. } => self.window.settle(flight, *usage),
            // The provider has not worked on it. It still counts as a request: at some providers it
            // does there too.
            SendOutcome::Rejected { .. } | SendOutcome::Refused => {
                self.window.settle(flight, TokenCost::default());
            }
            // It may have been worked on, and nobody knows how much.
            SendOutcome::Answered { usage: None, .. }
            | SendOutcome::Failed
            | SendOutcome::Dropped => {}
        }
    }

    fn on_withdrawn(&mut self, _view: PoolView, flight: Flight, _cost: TokenCost) {
        self.window.withdraw(flight);
    }

    fn limit(&self) -> u32 {
        self.connections
    }
}
