//! `proactive`: stays within configured limits per minute.
//!
//! No request is sent that would exceed a limit in any 60 seconds, so that the provider has nothing to
//! reject. With a `burst`, requests are also spread over the minute: at most that many at once, then
//! one for each that is old enough. A request counts from the time it is sent. Tokens are reserved by
//! the estimate and corrected when the request ends, which may open the gate or keep it closed longer.

mod config;
#[cfg(test)]
mod tests;
mod window;

pub use config::{ProactiveConfig, ProactiveConfigError};

use crate::{BindingLimit, Dimension, Flight, Gate, Policy, PoolView, SendOutcome, TokenCost};
use std::time::Duration;
pub(super) use window::ARRIVAL_MARGIN;
use window::SlidingWindow;

/// The strategy `proactive`.
#[derive(Debug, Clone)]
pub struct ProactivePolicy {
    /// The limits per minute.
    limits: Vec<(Dimension, u64)>,
    connections: u32,
    /// Maximum number of requests within a time span, derived from `rpm`.
    burst: Option<(u32, Duration)>,
    window: SlidingWindow,
}

impl ProactivePolicy {
    /// Creates the strategy. The configuration is not validated (see [`ProactiveConfig::check`]): a
    /// limit of zero admits one request per minute, like every limit smaller than a request, and
    /// without limits nothing is delayed.
    pub fn new(config: ProactiveConfig) -> ProactivePolicy {
        ProactivePolicy {
            limits: config.limits().map(|(dimension, _, limit)| (dimension, limit)).collect(),
            connections: config.connections.map_or(u32::MAX, |connections| connections.max(1)),
            burst: config.burst.zip(config.rpm).map(|(burst, rpm)| {
                let seconds = 60.0 * f64::from(burst.max(1)) / rpm.max(1) as f64;
                // The window keeps only the last minute.
                (burst.max(1), Duration::from_secs_f64(seconds.min(60.0)))
            }),
            window: SlidingWindow::default(),
        }
    }

    /// Returns the tokens of the last minute: the usage, or the estimate where it is unknown.
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
        view: PoolView,
        flight: Flight,
        _cost: TokenCost,
        outcome: &SendOutcome,
    ) {
        if !matches!(outcome, SendOutcome::Dropped) {
            self.window.respond(view.now, flight);
        }
        match outcome {
            SendOutcome::Answered { usage: Some(usage), .. } => self.window.settle(flight, *usage),
            // The provider did no work. It still counts as a request, as it does at some providers.
            SendOutcome::Rejected { .. } | SendOutcome::Refused => {
                self.window.settle(flight, TokenCost::default());
            }
            // The provider may have done work; the amount is unknown.
            SendOutcome::Answered { usage: None, .. }
            | SendOutcome::Failed { .. }
            | SendOutcome::Overloaded { .. }
            | SendOutcome::Dropped => {}
        }
    }

    fn on_withdrawn(&mut self, _view: PoolView, flight: Flight, _cost: TokenCost) {
        self.window.withdraw(flight);
    }

    fn limit(&self) -> u32 {
        self.connections
    }

    fn set_max_connections(&mut self, max: u32) {
        self.connections = max.max(1);
    }

    fn set_rpm(&mut self, _now: Duration, rpm: u64) -> bool {
        self.limits.retain(|(dimension, _)| *dimension != Dimension::Requests);
        self.limits.push((Dimension::Requests, rpm.max(1)));
        true
    }

    /// Returns the first configured rate, as requests come before tokens.
    fn binding(&self) -> Option<BindingLimit> {
        let cap =
            (self.connections < u32::MAX).then_some(BindingLimit::ConfiguredCap(self.connections));
        let rate = self.limits.first();
        rate.map(|(dimension, limit)| BindingLimit::ConfiguredRate(*dimension, *limit)).or(cap)
    }
}
