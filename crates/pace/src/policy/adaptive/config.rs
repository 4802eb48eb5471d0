//! The tunables of `adaptive`.

use crate::{AdaptiveBounds, ConnectionsError};
use std::time::Duration;

/// How the window moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaptiveConfig {
    /// Between what it moves, and where it begins.
    pub bounds: AdaptiveBounds,
    /// Least time between two cuts. With none, each rejection that carries no hint is a cut.
    pub cooldown_seconds: f64,
    /// What is left of the window after a cut.
    pub decrease_factor: f64,
    /// Growth per round after the first rejection, as a share of the window.
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
    /// Says what is out of range.
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

    /// One that passes the check, and its cooldown.
    pub(super) fn repaired(mut self) -> (AdaptiveConfig, Duration) {
        let usual = AdaptiveConfig::default();
        let AdaptiveBounds { min, start, max } = self.bounds;
        let min = min.max(1);
        let max = max.max(min);
        self.bounds = AdaptiveBounds { min, start: start.clamp(min, max), max };
        if !is_decrease(self.decrease_factor) {
            self.decrease_factor = usual.decrease_factor;
        }
        if !is_increase(self.scale_up_percent) {
            self.scale_up_percent = usual.scale_up_percent;
        }
        let cooldown = Duration::try_from_secs_f64(self.cooldown_seconds).unwrap_or_else(|_| {
            self.cooldown_seconds = usual.cooldown_seconds;
            Duration::from_secs_f64(usual.cooldown_seconds)
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

/// What is out of range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AdaptiveConfigError {
    /// The bounds.
    #[error(transparent)]
    Bounds(#[from] ConnectionsError),
    /// The time between two cuts.
    #[error("cooldown_seconds {0} is not a number of seconds from 0 on")]
    Cooldown(f64),
    /// The size of a cut.
    #[error("decrease_factor {0} is not between 0 and 1")]
    DecreaseFactor(f64),
    /// The growth of a round.
    #[error("scale_up_percent {0} is not above 0 and at most 1, which is 100 %")]
    ScaleUpPercent(f64),
}
