//! All requests of a probe: those of finished levels, those of the current level, and those in flight.

use super::fit::{Fit, FitScope, fit};
use super::sample::{RequestSample, quantile};
use std::collections::BTreeMap;

/// Requests of a probe. Times are seconds since its start.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Samples of finished levels.
    pub(super) history: Vec<RequestSample>,
    /// Samples of the current level.
    pub(super) level: Vec<RequestSample>,
    /// Requests in flight: send time by number.
    pub(super) in_flight: BTreeMap<u64, f64>,
}

impl Evidence {
    /// Returns the finished requests of all levels.
    pub(super) fn samples(&self) -> impl Iterator<Item = &RequestSample> {
        self.history.iter().chain(&self.level)
    }

    /// Returns the number of finished requests.
    pub(super) fn count(&self) -> usize {
        self.history.len() + self.level.len()
    }

    /// Returns the numbers of accepted and rejected requests of the current level. Requests in flight count as
    /// accepted.
    pub(super) fn level_counts(&self) -> (usize, usize) {
        let accepted = self.level.iter().filter(|s| s.is_accepted()).count();
        let rejected = self.level.iter().filter(|s| s.is_rejected()).count();
        (accepted + self.in_flight.len(), rejected)
    }

    /// Fits the kinds of limits.
    pub(super) fn fit(&self, scope: FitScope) -> Option<Fit> {
        let all: Vec<RequestSample> = self.samples().copied().collect();
        fit(&all, self.in_flight.values().copied(), scope)
    }

    /// Returns the seconds in flight after which a request counts as accepted; rejections arrive sooner.
    /// `latency` is the median of accepted requests.
    pub(super) fn acceptance_delay(&self, latency: f64) -> f64 {
        let rejections = self.samples().filter(|s| s.is_rejected()).map(RequestSample::latency);
        let rejection_latency = quantile(rejections, 0.5).unwrap_or(0.0);
        (4.0 * rejection_latency).clamp(0.002, (0.5 * latency).max(0.002))
    }

    /// Returns the shortest latency in seconds.
    pub(super) fn min_latency(&self) -> f64 {
        let latencies = self.samples().filter(|s| s.is_accepted()).map(RequestSample::latency);
        latencies.fold(f64::INFINITY, f64::min).clamp(0.001, 60.0)
    }

    /// Returns the latency that nine of ten accepted requests do not exceed, in seconds.
    pub(super) fn slow_latency(&self) -> f64 {
        let accepted = self.samples().filter(|s| s.is_accepted());
        quantile(accepted.map(RequestSample::latency), 0.9).unwrap_or(0.0)
    }

    /// Whether requests of this level were accepted again after rejections at least twice. The time between
    /// two such events is the length of a window.
    pub(super) fn has_refills(&self) -> bool {
        let pending = self.in_flight.values().map(|sent| (*sent, true));
        let mut all: Vec<(f64, bool)> =
            self.level.iter().map(|s| (s.sent, !s.is_rejected())).chain(pending).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let is_refill = |pair: &&[(f64, bool)]| matches!(pair, [(_, false), (_, true)]);
        all.windows(2).filter(is_refill).count() >= 2
    }
}
