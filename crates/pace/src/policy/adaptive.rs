//! `adaptive`: a concurrency limit that grows after answers and shrinks after rejections.
//!
//! Additive increase, multiplicative decrease, with a slow start as in TCP. Only clean successes count:
//! answers to a first attempt. An answer after a retry is neutral, and so is one from the cache, which
//! never reaches a pool. A transient failure (a 5xx, a timeout, a network error) only delays growth,
//! because the answer to its retry is not clean: fewer requests in flight do not help against an outage.
//!
//! A rejection starts an *episode*: one cut, followed by a time without cuts and without counting, so
//! that a burst of rejections causes one cut.

mod config;
#[cfg(test)]
mod tests;

pub use config::{AdaptiveConfig, AdaptiveConfigError};

use crate::{
    BindingLimit, ChangeReason, Flight, Gate, LimitChange, Policy, PoolView, Quota, SendOutcome,
    TokenCost,
};
use std::time::Duration;

/// Minimum number of successes in a round, even if the limit is lower.
const MIN_ROUND: u32 = 4;

/// Maximum effect of a hint on an episode. The reset of a daily quota is hours away; by default calls
/// time out earlier, and a frozen limit learns nothing.
const MAX_HINT: Duration = Duration::from_secs(600);

/// The strategy `adaptive`.
#[derive(Debug, Clone)]
pub struct AdaptivePolicy {
    config: AdaptiveConfig,
    cooldown: Duration,
    /// The current bounds: those of the configuration unless `set_max_connections` changed them.
    min: u32,
    max: u32,
    limit: u32,
    /// Whether there was no rejection so far.
    slow_start: bool,
    /// Clean successes in this round.
    successes: u32,
    /// Maximum number of requests in flight in this round.
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
    /// Creates the strategy. Invalid values of the configuration (see [`AdaptiveConfig::check`]) are
    /// replaced by the nearest valid ones or by the defaults.
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

    fn is_cooling(&self, now: Duration) -> bool {
        self.episode.is_some_and(|episode| now < episode.until)
    }

    fn start_round(&mut self) {
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
        // A limit that was used below 80 % gives no evidence for a higher one.
        let was_used = u64::from(self.peak) * 5 >= u64::from(self.limit) * 4;
        self.start_round();
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
        self.start_round();
        let hint = quota
            .retry_after
            .or_else(|| quota.readings.iter().filter_map(|reading| reading.reset).max());
        let pause = self.cooldown.max(hint.unwrap_or_default().min(MAX_HINT));
        match &mut self.episode {
            // A longer hint extends the episode, counted from its cut. Counted from each rejection,
            // a provider whose hints exceed the time between rejections would extend it forever, and
            // the limit would neither shrink nor grow.
            Some(episode) if now < episode.until => {
                episode.until = episode.until.max(episode.since.saturating_add(pause));
            }
            _ => {
                self.episode = Some(Episode { since: now, until: now.saturating_add(pause) });
                // Products that miss a whole number by a rounding error count as whole.
                let share = f64::from(self.limit) * self.config.decrease_factor + 1e-9;
                let limit = (share as u32).max(self.min);
                self.change(now, limit, ChangeReason::RateLimit);
            }
        }
    }

    /// Sets the limit; returns whether it changed.
    fn change(&mut self, at: Duration, new_limit: u32, reason: ChangeReason) -> bool {
        let old_limit = std::mem::replace(&mut self.limit, new_limit);
        if old_limit != new_limit {
            let (rpm, binding) = (None, None);
            self.changes.push(LimitChange { at, old_limit, new_limit, reason, rpm, binding });
        }
        old_limit != new_limit
    }
}

impl Policy for AdaptivePolicy {
    /// If the limit falls below the requests in flight, the gate stays closed until enough have ended.
    fn gate(&mut self, view: PoolView, _cost: TokenCost) -> Gate {
        if view.in_flight < self.limit { Gate::Open } else { Gate::Closed }
    }

    fn on_sent(&mut self, _view: PoolView, _flight: Flight, _cost: TokenCost) {}

    fn on_ended(
        &mut self,
        view: PoolView,
        _flight: Flight,
        _cost: TokenCost,
        outcome: &SendOutcome,
    ) {
        // The number in flight peaks just before an end, and it included the request that ended.
        if !self.is_cooling(view.now) {
            self.peak = self.peak.max(view.in_flight.saturating_add(1));
        }
        match outcome {
            SendOutcome::Answered { clean: true, .. } => self.succeeded(view.now),
            SendOutcome::Rejected { quota } => self.rejected(view.now, quota),
            SendOutcome::Answered { clean: false, .. }
            | SendOutcome::Failed { .. }
            | SendOutcome::Overloaded { .. }
            | SendOutcome::Refused
            | SendOutcome::Dropped => {}
        }
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    /// Changes the upper bound. If it is below the configured lower bound, it replaces that too until it
    /// is raised again.
    fn set_max_connections(&mut self, max: u32) {
        self.max = max.max(1);
        self.min = self.config.bounds.min.min(self.max);
        let limit = self.limit.clamp(self.min, self.max);
        if limit != self.limit {
            self.limit = limit;
            self.start_round();
        }
    }

    fn binding(&self) -> Option<BindingLimit> {
        let is_max = self.limit >= self.max;
        Some(if is_max { BindingLimit::ConfiguredCap(self.max) } else { BindingLimit::Growing })
    }

    fn take_changes(&mut self) -> Vec<LimitChange> {
        std::mem::take(&mut self.changes)
    }
}
