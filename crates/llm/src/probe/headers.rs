//! Limits from response headers.

use super::sample::quantile;
use bakeoff_pace::{Dimension, Quota, QuotaReading};

/// One limit, as reported by response headers.
#[derive(Debug, Clone, PartialEq)]
pub struct HeaderLimit {
    /// Unit that is limited.
    pub dimension: Dimension,
    /// Limit per window.
    pub limit: f64,
    /// Smallest remaining quota seen.
    pub min_remaining: f64,
    /// Seconds in which the whole limit is restored, if that can be derived.
    pub window_seconds: Option<f64>,
    /// Window estimates, one per reading.
    windows: Vec<f64>,
    max_reset: f64,
}

impl HeaderLimit {
    /// Returns the limit per minute, if the window is known.
    pub fn per_minute(&self) -> Option<f64> {
        Some(self.limit * 60.0 / self.window_seconds?)
    }

    fn record(&mut self, reading: &QuotaReading) {
        self.limit = reading.limit;
        self.min_remaining = self.min_remaining.min(reading.remaining);
        let used = reading.limit - reading.remaining;
        let Some(reset) = reading.reset.map(|reset| reset.as_secs_f64()) else { return };
        self.max_reset = self.max_reset.max(reset);
        // A date in whole seconds is too coarse for a short reset.
        if used >= 2.0 && (!reading.coarse || reset > 5.0) {
            self.windows.push(reset * reading.limit / used);
        }
        let at = |share| quantile(self.windows.iter().copied(), share);
        self.window_seconds = match (at(0.1), at(0.5), at(0.9)) {
            // The reset of a token bucket is proportional to the used quota, so the estimates agree.
            (Some(low), Some(middle), Some(high)) if high < 1.5 * low => Some(middle),
            // The reset of a fixed window is not; the longest one covers nearly the whole window.
            (Some(_), ..) => Some(self.max_reset),
            _ => None,
        };
    }
}

/// Limits collected from all responses.
#[derive(Debug, Default)]
pub(super) struct HeaderLimits(pub(super) Vec<HeaderLimit>);

impl HeaderLimits {
    pub(super) fn record(&mut self, quota: &Quota) {
        for reading in &quota.readings {
            let known = self.0.iter().position(|limit| limit.dimension == reading.dimension);
            let index = known.unwrap_or(self.0.len());
            if known.is_none() {
                self.0.push(HeaderLimit {
                    dimension: reading.dimension,
                    limit: reading.limit,
                    min_remaining: reading.remaining,
                    window_seconds: None,
                    windows: Vec::new(),
                    max_reset: 0.0,
                });
            }
            if let Some(limit) = self.0.get_mut(index) {
                limit.record(reading);
            }
        }
    }

    pub(super) fn per_minute(&self, dimension: Dimension) -> Option<f64> {
        self.0.iter().find(|limit| limit.dimension == dimension)?.per_minute()
    }
}

/// Returns the seconds until all limits are restored, or `None` without reset headers.
pub(super) fn seconds_until_restored(quota: &Quota) -> Option<f64> {
    let resets = quota.readings.iter().filter_map(|reading| reading.reset);
    resets.max().map(|reset| reset.as_secs_f64())
}
