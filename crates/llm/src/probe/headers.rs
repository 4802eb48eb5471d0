//! What the provider's headers say about its limits.

use super::sample::quantile;
use bakeoff_pace::{Dimension, Quota, QuotaReading};

/// One limit as headers told it.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What it counts.
    pub dimension: Dimension,
    /// The most there can be.
    pub limit: f64,
    /// The least that was ever left.
    pub least_remaining: f64,
    /// Seconds in which the limit is restored, where that can be told.
    pub window_seconds: Option<f64>,
    windows: Vec<f64>,
    longest_reset: f64,
}

impl Told {
    /// The limit per minute, where the window is known.
    pub fn per_minute(&self) -> Option<f64> {
        Some(self.limit * 60.0 / self.window_seconds?)
    }

    fn note(&mut self, reading: &QuotaReading) {
        self.limit = reading.limit;
        self.least_remaining = self.least_remaining.min(reading.remaining);
        let used = reading.limit - reading.remaining;
        let Some(reset) = reading.reset.map(|reset| reset.as_secs_f64()) else { return };
        self.longest_reset = self.longest_reset.max(reset);
        // A date in whole seconds says little about a short time.
        if used >= 2.0 && (!reading.coarse || reset > 5.0) {
            self.windows.push(reset * reading.limit / used);
        }
        let at = |share| quantile(self.windows.iter().copied(), share);
        self.window_seconds = match (at(0.1), at(0.5), at(0.9)) {
            // A bucket's reset grows with what was used.
            (Some(low), Some(middle), Some(high)) if high < 1.5 * low => Some(middle),
            // A window's does not, and the longest is nearly all of it.
            (Some(_), ..) => Some(self.longest_reset),
            _ => None,
        };
    }
}

/// Collects what headers say.
#[derive(Debug, Default)]
pub(super) struct Headers(pub(super) Vec<Told>);

impl Headers {
    pub(super) fn note(&mut self, quota: &Quota) {
        for reading in &quota.readings {
            let known = self.0.iter().position(|told| told.dimension == reading.dimension);
            let index = known.unwrap_or(self.0.len());
            if known.is_none() {
                self.0.push(Told {
                    dimension: reading.dimension,
                    limit: reading.limit,
                    least_remaining: reading.remaining,
                    window_seconds: None,
                    windows: Vec::new(),
                    longest_reset: 0.0,
                });
            }
            if let Some(told) = self.0.get_mut(index) {
                told.note(reading);
            }
        }
    }

    pub(super) fn per_minute(&self, dimension: Dimension) -> Option<f64> {
        self.0.iter().find(|told| told.dimension == dimension)?.per_minute()
    }
}

/// Seconds until every limit is restored; `None` when headers do not say.
pub(super) fn until_full(quota: &Quota) -> Option<f64> {
    let resets = quota.readings.iter().filter_map(|reading| reading.reset);
    resets.max().map(|reset| reset.as_secs_f64())
}
