//! `adaptive`: a window that grows while the provider keeps up and shrinks when it does not.
//!
//! Additive increase, multiplicative decrease, with a slow start as in TCP. What counts is a clean
//! success: an answer at the first attempt. An answer after a retry is neutral, and so is one from
//! the cache, which never reaches a pool. A failure that is not about limits (a 5xx, a timeout, the
//! network) only delays growth, because the answer that follows it in the end is not a clean one:
//! fewer requests at once do not help against an outage.
//!
//! A rejection begins an *episode*: one cut, and then a time in which nothing is cut and nothing is
//! counted, so that one burst of rejections is one cut.

mod config;
#[cfg(test)]
mod tests;

pub use config::{AdaptiveConfig, AdaptiveConfigError};

use crate::{
    ChangeReason, Flight, Gate, LimitChange, Policy, PoolView, Quota, SendOutcome, TokenCost,
};
use std::time::Duration;

/// Fewer successes say nothing, however narrow the window is.
const MIN_ROUND: u32 = 4;

/// No hint keeps an episode open for longer. The reset of a daily quota is hours away, and a window
/// that stands still for so long learns nothing; calls give up before that by default.
const MAX_HINT: Duration = Duration::from_secs(600);

/// The strategy.
#[derive(Debug, Clone)]
pub struct AdaptivePolicy {
    config: AdaptiveConfig,
    cooldown: Duration,
    /// The bounds in force: those of the configuration, unless somebody has moved the upper one.
    min: u32,
    max: u32,
    limit: u32,
    /// No rejection so far.
    slow_start: bool,
    /// Clean successes in this round.
    successes: u32,
    /// Most requests in flight in this round.
    peak: u32,
    episode: Option<Episode>,
    changes: Vec<LimitChange>,
}

/// The time after a cut.
#[derive(Debug, Clone, Copy)]
struct Episode {
    since: Duration,
    until: Duration,
}

impl AdaptivePolicy {
    /// Starts at the configured width. [`AdaptiveConfig::check`] tells what is wrong with a
    /// configuration; here the nearest possible values, or else the defaults, take their places.
    pub fn new(config: AdaptiveConfig) -> AdaptivePolicy {
        let (config, cooldown) = config.repaired();
        AdaptivePolicy {
            config,
            cooldown,
            min: config.bounds.min,
            max: config.bounds.max,
            limit: config.bounds.start,
            slow_start: true,
            successes: 0,
            peak: 0,
            episode: None,
            changes: Vec::new(),
        }
    }

    /// Moves the upper bound while the pool is in use. Where it is below the configured lower one
    /// both are the same, until it is raised again.
    pub fn set_max(&mut self, now: Duration, max: u32) {
        self.max = max.max(1);
        self.min = self.config.bounds.min.min(self.max);
        let limit = self.limit.clamp(self.min, self.max);
        if self.change(now, limit, ChangeReason::Manual) {
            self.begin_round();
        }
    }

    fn is_cooling(&self, now: Duration) -> bool {
        self.episode.is_some_and(|episode| now < episode.until)
    }

    fn begin_round(&mut self) {
        self.successes = 0;
        self.peak = 0;
    }

    fn succeeded(&mut self, now: Duration) {
        if self.is_cooling(now) {
            return;
        }
        self.successes += 1;
        if self.successes < self.limit.max(MIN_ROUND) {
            return;
        }
        // Below 80 % nothing was learned about a wider window.
        let was_used = u64::from(self.peak) * 5 >= u64::from(self.limit) * 4;
        self.begin_round();
        if !was_used {
            return;
        }
        let (more, reason) = if self.slow_start {
            (self.limit, ChangeReason::SlowStart)
        } else {
            let share = (f64::from(self.limit) * self.config.scale_up_percent).round();
            ((share as u32).max(1), ChangeReason::SteadyStateUp)
        };
        let limit = self.limit.saturating_add(more).min(self.max);
        self.change(now, limit, reason);
    }

    fn rejected(&mut self, now: Duration, quota: &Quota) {
        self.slow_start = false;
        self.begin_round();
        let hint = quota
            .retry_after
            .or_else(|| quota.readings.iter().filter_map(|reading| reading.reset).max());
        let pause = self.cooldown.max(hint.unwrap_or_default().min(MAX_HINT));
        match &mut self.episode {
            // A longer hint prolongs the episode, counted from its cut: counted from each
            // rejection, a provider that always asks for more than the time between two of them
            // would keep it open for ever, with a window that neither shrinks nor grows.
            Some(episode) if now < episode.until => {
                episode.until = episode.until.max(episode.since.saturating_add(pause));
            }
            _ => {
                self.episode = Some(Episode { since: now, until: now.saturating_add(pause) });
                // What would be whole but for the last bit of the product is whole.
                let share = f64::from(self.limit) * self.config.decrease_factor + 1e-9;
                let limit = (share as u32).max(self.min);
                self.change(now, limit, ChangeReason::RateLimit);
            }
        }
    }

    /// Whether it is a change at all.
    fn change(&mut self, at: Duration, new_limit: u32, reason: ChangeReason) -> bool {
        let old_limit = std::mem::replace(&mut self.limit, new_limit);
        if old_limit != new_limit {
            self.changes.push(LimitChange { at, old_limit, new_limit, reason });
        }
        old_limit != new_limit
    }
}

impl Policy for AdaptivePolicy {
    /// A window that has become narrower than what is in flight stays shut until enough have
    /// ended.
    fn gate(&mut self, view: PoolView, _cost: TokenCost) -> Gate {
        if view.in_flight < self.limit { Gate::Open } else { Gate::Closed }
    }

    fn on_sent(&mut self, _view: PoolView, _flight: Flight, _cost: TokenCost) {}

    fn on_ended(
        &mut self,
        view: PoolView,
        _flight: Flight,
        _cost: TokenCost,
        ending: &SendOutcome,
    ) {
        // Just before something ends there are as many in flight as ever since the last end. The
        // one that has ended was among them.
        if !self.is_cooling(view.now) {
            self.peak = self.peak.max(view.in_flight.saturating_add(1));
        }
        match ending {
            SendOutcome::Answered { clean: true, .. } => self.succeeded(view.now),
            SendOutcome::Rejected { quota } => self.rejected(view.now, quota),
            SendOutcome::Answered { clean: false, .. }
            | SendOutcome::Failed
            | SendOutcome::Refused
            | SendOutcome::Dropped => {}
        }
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn take_changes(&mut self) -> Vec<LimitChange> {
        std::mem::take(&mut self.changes)
    }
}
