//! Configuration of `adaptive`.

use crate::{AdaptiveBounds, ConnectionsError};
use std::time::Duration;

/// The tunables of `adaptive`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AdaptiveConfig {
    /// Bounds and initial value of the limit.
    pub bounds: AdaptiveBounds,
    /// Minimum time between two cuts. At 0, each rejection without a hint is a cut.
    pub cooldown_seconds: f64,
    /// Factor of a cut.
    pub decrease_factor: f64,
    /// Growth per round after the first rejection, as a share of the limit.
    pub scale_up_percent: f64,
}

impl Default for AdaptiveConfig {
    fn default() -> Self {
        AdaptiveConfig {
            bounds: AdaptiveBounds::default(),
            cooldown_seconds: 15.0,
            decrease_factor: 0.8,
            scale_up_percent: 0.05,
        }
    }
}

impl AdaptiveConfig {
    /// Checks that all values are in range.
    pub fn check(&self) -> Result<(), AdaptiveConfigError> {
        self.bounds.check()?;
        let cooldown = self.cooldown_seconds;
        if Duration::try_from_secs_f64(cooldown).is_err() {
            return Err(AdaptiveConfigError::Cooldown(cooldown));
        }
        if !is_decrease(self.decrease_factor) {
            return Err(AdaptiveConfigError::DecreaseFactor(self.decrease_factor));
        }
        if !is_increase(self.scale_up_percent) {
            return Err(AdaptiveConfigError::ScaleUpPercent(self.scale_up_percent));
        }
        Ok(())
    }

    /// Returns a configuration that passes the check, and its cooldown.
    pub(super) fn repaired(mut self) -> (AdaptiveConfig, Duration) {
        let default = AdaptiveConfig::default();
        let AdaptiveBounds { min, start, max } = self.bounds;
        let min = min.max(1);
        let max = max.max(min);
        self.bounds = AdaptiveBounds { min, start: start.clamp(min, max), max };
        if !is_decrease(self.decrease_factor) {
            self.decrease_factor = default.decrease_factor;
        }
        if !is_increase(self.scale_up_percent) {
            self.scale_up_percent = default.scale_up_percent;
        }
        let cooldown = Duration::try_from_secs_f64(self.cooldown_seconds).unwrap_or_else(|_| {
            self.cooldown_seconds = default.cooldown_seconds;
            Duration::from_secs_f64(default.cooldown_seconds)
        });
        (self, cooldown)
    }
}

fn is_decrease(factor: f64) -> bool {
    factor > 0.0 && factor < 1.0
}

fn is_increase(share: f64) -> bool {
    share > 0.0 && share <= 1.0
}

/// A value out of range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AdaptiveConfigError {
    /// Invalid bounds.
    #[error(transparent)]
    Bounds(#[from] ConnectionsError),
    /// Invalid time between two cuts.
    #[error("cooldown_seconds {0} must be a finite number, at least 0")]
    Cooldown(f64),
    /// Invalid factor of a cut.
    #[error("decrease_factor {0} is not between 0 and 1")]
    DecreaseFactor(f64),
    /// Invalid growth of a round.
    #[error("scale_up_percent {0} must be above 0 and at most 1 (100 %)")]
    ScaleUpPercent(f64),
}
