//! What `auto` reports: its limit, what binds it, changes, and what later runs may use.

use super::{AutoMode, AutoPolicy, Constraint, LearnedLimit};
use crate::{BindingLimit, ChangeReason, LimitChange};
use std::time::Duration;

/// Changes of the limit by a smaller factor are not reported.
const MIN_CHANGE_RATIO: f64 = 1.25;
/// Requests in flight beyond what a pace needs on average: a factor and a constant.
const CONCURRENCY_SLACK: f64 = 2.0;
const SPARE_REQUESTS: f64 = 4.0;

impl AutoPolicy {
    /// Returns the current concurrency limit.
    pub(super) fn concurrency_limit(&self) -> u32 {
        let limit = match &self.mode {
            AutoMode::Ramp(ramp) => self.knee.limit().unwrap_or_else(|| ramp.limit()),
            AutoMode::Cap(cap) => f64::from(cap.width()),
            // By Little's law, what sustains the pace, with a reserve for slow answers.
            AutoMode::Bucket(bucket) => {
                CONCURRENCY_SLACK * bucket.pace() * self.latency + SPARE_REQUESTS
            }
            AutoMode::Window(window) => window.count() + SPARE_REQUESTS,
            AutoMode::Sliding(sliding) => sliding.count() + SPARE_REQUESTS,
        };
        // A cast from float to integer saturates.
        (limit.ceil() as u32).clamp(1, self.ceiling)
    }

    /// Returns what limits the rate.
    pub(super) fn binding_limit(&self) -> BindingLimit {
        match (self.constraint, &self.mode) {
            (Constraint::Ceiling, _) => BindingLimit::ConfiguredCap(self.ceiling),
            (Constraint::UserRate(dimension), _) => {
                BindingLimit::ConfiguredRate(dimension, self.user_rates.per_minute(dimension))
            }
            (Constraint::Mirror(index), _) => {
                let mirror = &self.mirrors[index];
                BindingLimit::HeaderRate(mirror.dimension(), mirror.rate())
            }
            (Constraint::Hypothesis, AutoMode::Ramp(_)) if self.knee.is_saturated() => {
                BindingLimit::Saturation(self.concurrency_limit())
            }
            (Constraint::Hypothesis, AutoMode::Ramp(_)) => BindingLimit::Growing,
            (Constraint::Hypothesis, AutoMode::Cap(cap)) if cap.is_measured() => {
                BindingLimit::Cap(cap.width())
            }
            (Constraint::Hypothesis, AutoMode::Cap(cap)) if cap.is_remembered() => {
                BindingLimit::RememberedCap(cap.width())
            }
            // The first rejection may have another cause.
            (Constraint::Hypothesis, AutoMode::Cap(_)) => BindingLimit::Growing,
            (Constraint::Hypothesis, AutoMode::Bucket(bucket)) if bucket.is_remembered() => {
                match bucket.is_growing() {
                    true => BindingLimit::Growing,
                    false => BindingLimit::RememberedRate(bucket.rate()),
                }
            }
            (Constraint::Hypothesis, AutoMode::Bucket(bucket)) => {
                match self.has_reached(bucket.rate()) {
                    true => BindingLimit::MeasuredRate(bucket.rate()),
                    // Something else may be the limit.
                    false => BindingLimit::Growing,
                }
            }
            (Constraint::Hypothesis, AutoMode::Window(window)) => {
                BindingLimit::Window { requests: window.count() as u64, seconds: window.length() }
            }
            (Constraint::Hypothesis, AutoMode::Sliding(sliding)) => {
                BindingLimit::Window { requests: sliding.count() as u64, seconds: sliding.length() }
            }
        }
    }

    /// Returns whether requests were accepted at about this rate.
    fn has_reached(&self, rate: f64) -> bool {
        self.ledger.accepted() >= 1.0 && self.throughput.reaches(rate)
    }

    /// Returns the limit to remember for later runs, if measurements have confirmed it.
    pub(super) fn learned_limit(&self) -> Option<LearnedLimit> {
        match &self.mode {
            AutoMode::Cap(cap) if cap.is_measured() => Some(LearnedLimit::Cap(cap.width())),
            AutoMode::Bucket(bucket)
                if bucket.is_confident() && self.has_reached(bucket.rate()) =>
            {
                Some(LearnedLimit::Rate(bucket.rate()))
            }
            AutoMode::Window(window) => Some(LearnedLimit::Rate(window.rate())),
            AutoMode::Sliding(sliding) => Some(LearnedLimit::Rate(sliding.rate())),
            _ => None,
        }
    }

    /// Records a change of the limit that is large enough to report, or what limits the rate if it was
    /// just found.
    pub(super) fn record_change(&mut self, now: Duration) {
        let (old_limit, new_limit) = (self.reported, self.concurrency_limit());
        let ratio = f64::from(new_limit) / f64::from(old_limit.max(1));
        let is_small = (1.0 / MIN_CHANGE_RATIO..MIN_CHANGE_RATIO).contains(&ratio);
        let binding = self.binding_limit();
        let kind = binding.is_found().then(|| std::mem::discriminant(&binding));
        let is_news = kind.is_some() && kind != self.reported_kind;
        if is_small && !is_news {
            return;
        }
        let reason = match self.mode {
            _ if new_limit < old_limit && matches!(binding, BindingLimit::Saturation(_)) => {
                ChangeReason::Latency
            }
            _ if new_limit <= old_limit && self.saw_rejection => ChangeReason::RateLimit,
            _ if new_limit < old_limit => ChangeReason::Latency,
            AutoMode::Ramp(_) => ChangeReason::SlowStart,
            _ => ChangeReason::SteadyStateUp,
        };
        self.reported = new_limit;
        self.saw_rejection = false;
        self.reported_kind = kind.or(self.reported_kind);
        let (at, rpm, binding) = (now, None, Some(binding));
        self.changes.push(LimitChange { at, old_limit, new_limit, reason, rpm, binding });
    }
}
