//! How much of a provider may be used: one setting for everything about a pool.
//!
//! ```
//! use bakeoff_pace::Limits;
//!
//! let limits = Limits::auto().connections(200).rpm(300);
//! assert!(limits.check().is_ok());
//! let error = Limits::fixed(8).rpm(300).check().unwrap_err();
//! assert_eq!(error.to_string(), "rpm is for the strategies auto and proactive, not for fixed");
//! ```

mod error;
mod overrides;
#[cfg(test)]
mod tests;

pub use error::LimitsError;
pub use overrides::LimitOverrides;

use crate::{
    AdaptiveBounds, AdaptiveConfig, AdaptiveConnections, AdaptivePolicy, AutoConfig, AutoPolicy,
    ConnectionsError, FixedPolicy, LearnedLimit, Policy, ProactiveConfig, ProactivePolicy, Rates,
    ReactivePolicy, RetryAfter, RetryPolicy, Strategy,
};
use std::str::FromStr;
use std::time::Duration;

/// Requests in flight of `fixed` when nobody says otherwise.
const DEFAULT_FIXED_CONNECTIONS: u32 = 10;

/// How much of a provider may be used, and how hard a call is tried. What is not set has the
/// default of its strategy.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// By what it is decided when a request goes out.
    pub strategy: Strategy,
    /// Most requests in flight, or the bounds of `adaptive`.
    pub connections: Option<Connections>,
    /// Requests per minute.
    pub rpm: Option<u64>,
    /// Tokens of prompts and answers per minute.
    pub tpm: Option<u64>,
    /// Tokens of prompts per minute.
    pub itpm: Option<u64>,
    /// Tokens of answers per minute.
    pub otpm: Option<u64>,
    /// Of `proactive`: requests that may go out at once; a whole minute's when absent.
    pub burst: Option<u32>,
    /// Of `adaptive`: least time between two cuts.
    pub cooldown_seconds: Option<f64>,
    /// Of `adaptive`: what is left of the window after a cut.
    pub decrease_factor: Option<f64>,
    /// Of `adaptive`: growth per round after the first rejection, as a share of the window.
    pub scale_up_percent: Option<f64>,
    /// Of `auto`: what a positive Retry-After means.
    pub retry_after: Option<RetryAfter>,
    /// Most retries of a call, of any kind.
    pub max_retries: Option<u32>,
    /// Most time for a whole call, waiting for permits left out.
    pub timeout: Option<Duration>,
    /// Most time for one attempt.
    pub attempt_timeout: Option<Duration>,
}

/// How many requests may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// At most so many.
    Max(u32),
    /// A window that adapts.
    Range(AdaptiveBounds),
}

impl From<u32> for Connections {
    fn from(most: u32) -> Connections {
        Connections::Max(most)
    }
}

impl From<AdaptiveBounds> for Connections {
    fn from(bounds: AdaptiveBounds) -> Connections {
        Connections::Range(bounds)
    }
}

/// Reads `80`, `4-80` and `4-20-80`.
impl FromStr for Connections {
    type Err = ConnectionsError;

    fn from_str(text: &str) -> Result<Connections, ConnectionsError> {
        match text.parse()? {
            // One number says nothing about the other bounds.
            AdaptiveConnections::On(bounds) if !text.contains('-') => {
                let number = text.trim().bytes().all(|byte| byte.is_ascii_digit());
                let no_word = ConnectionsError::UnknownWord { text: text.to_owned() };
                if number { Ok(Connections::Max(bounds.max)) } else { Err(no_word) }
            }
            AdaptiveConnections::On(bounds) => Ok(Connections::Range(bounds)),
            AdaptiveConnections::Off => {
                Err(ConnectionsError::UnknownWord { text: text.to_owned() })
            }
        }
    }
}

impl Limits {
    /// Everything at the defaults of a strategy.
    pub fn new(strategy: Strategy) -> Limits {
        Limits { strategy, ..Limits::default() }
    }

    /// Finds out what the limits are; the default.
    pub fn auto() -> Limits {
        Limits::new(Strategy::Auto)
    }

    /// So many at once.
    pub fn fixed(connections: u32) -> Limits {
        Limits::new(Strategy::Fixed).connections(connections)
    }

    /// A window that adapts between these bounds.
    pub fn adaptive(bounds: AdaptiveBounds) -> Limits {
        Limits::new(Strategy::Adaptive).connections(bounds)
    }

    /// Most requests in flight.
    #[must_use]
    pub fn connections(self, connections: impl Into<Connections>) -> Limits {
        Limits { connections: Some(connections.into()), ..self }
    }

    /// Requests per minute.
    #[must_use]
    pub fn rpm(self, rpm: u64) -> Limits {
        Limits { rpm: Some(rpm), ..self }
    }

    /// Tokens of prompts and answers per minute.
    #[must_use]
    pub fn tpm(self, tpm: u64) -> Limits {
        Limits { tpm: Some(tpm), ..self }
    }

    /// Tokens of prompts per minute.
    #[must_use]
    pub fn itpm(self, itpm: u64) -> Limits {
        Limits { itpm: Some(itpm), ..self }
    }

    /// Tokens of answers per minute.
    #[must_use]
    pub fn otpm(self, otpm: u64) -> Limits {
        Limits { otpm: Some(otpm), ..self }
    }

    /// Requests that may go out at once, for `proactive`.
    #[must_use]
    pub fn burst(self, burst: u32) -> Limits {
        Limits { burst: Some(burst), ..self }
    }

    /// Least time between two cuts, for `adaptive`.
    #[must_use]
    pub fn cooldown_seconds(self, cooldown_seconds: f64) -> Limits {
        Limits { cooldown_seconds: Some(cooldown_seconds), ..self }
    }

    /// What is left of the window after a cut, for `adaptive`.
    #[must_use]
    pub fn decrease_factor(self, decrease_factor: f64) -> Limits {
        Limits { decrease_factor: Some(decrease_factor), ..self }
    }

    /// Growth per round after the first rejection as a share of the window, for `adaptive`.
    #[must_use]
    pub fn scale_up_percent(self, scale_up_percent: f64) -> Limits {
        Limits { scale_up_percent: Some(scale_up_percent), ..self }
    }

    /// What a positive Retry-After means to `auto`.
    #[must_use]
    pub fn retry_after(self, retry_after: RetryAfter) -> Limits {
        Limits { retry_after: Some(retry_after), ..self }
    }

    /// Most retries of a call.
    #[must_use]
    pub fn max_retries(self, max_retries: u32) -> Limits {
        Limits { max_retries: Some(max_retries), ..self }
    }

    /// Most time for a whole call.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Limits {
        Limits { timeout: Some(timeout), ..self }
    }

    /// Most time for one attempt.
    #[must_use]
    pub fn attempt_timeout(self, attempt_timeout: Duration) -> Limits {
        Limits { attempt_timeout: Some(attempt_timeout), ..self }
    }

    /// Says what is impossible, or set for another strategy.
    pub fn check(&self) -> Result<(), LimitsError> {
        error::check(self)
    }

    /// The strategy, ready to pace a pool. What an earlier run learned is for `auto` alone.
    pub fn policy(&self, learned: Option<LearnedLimit>) -> Result<Box<dyn Policy>, LimitsError> {
        self.check()?;
        let most = self.max_connections();
        Ok(match self.strategy {
            Strategy::Auto => Box::new(AutoPolicy::new(self.auto_config(learned))),
            Strategy::Fixed => {
                Box::new(FixedPolicy::new(most.unwrap_or(DEFAULT_FIXED_CONNECTIONS)))
            }
            Strategy::Adaptive => Box::new(AdaptivePolicy::new(self.adaptive_config())),
            Strategy::Reactive => Box::new(ReactivePolicy::new(most)),
            Strategy::Proactive => Box::new(ProactivePolicy::new(self.proactive_config())),
            Strategy::None => Box::new(most.map_or_else(FixedPolicy::unbounded, FixedPolicy::new)),
        })
    }

    /// A retry policy with what is set here in place of what it says.
    #[must_use]
    pub fn retry_policy(&self, usual: RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            max_retries: self.max_retries.or(usual.max_retries),
            timeout: self.timeout.unwrap_or(usual.timeout),
            attempt_timeout: self.attempt_timeout.or(usual.attempt_timeout),
            ..usual
        }
    }

    fn max_connections(&self) -> Option<u32> {
        self.connections.map(|connections| match connections {
            Connections::Max(most) => most,
            Connections::Range(bounds) => bounds.max,
        })
    }

    fn auto_config(&self, learned: Option<LearnedLimit>) -> AutoConfig {
        let usual = AutoConfig::default();
        let rate = |limit: Option<u64>| limit.map(|limit| limit as f64);
        AutoConfig {
            connections: self.max_connections().unwrap_or(usual.connections),
            retry_after: self.retry_after.unwrap_or(usual.retry_after),
            rates: Rates {
                rpm: rate(self.rpm),
                tpm: rate(self.tpm),
                itpm: rate(self.itpm),
                otpm: rate(self.otpm),
            },
            learned,
        }
    }

    fn adaptive_config(&self) -> AdaptiveConfig {
        let usual = AdaptiveConfig::default();
        AdaptiveConfig {
            bounds: match self.connections {
                Some(Connections::Range(bounds)) => bounds,
                Some(Connections::Max(most)) => AdaptiveBounds::up_to(most),
                None => usual.bounds,
            },
            cooldown_seconds: self.cooldown_seconds.unwrap_or(usual.cooldown_seconds),
            decrease_factor: self.decrease_factor.unwrap_or(usual.decrease_factor),
            scale_up_percent: self.scale_up_percent.unwrap_or(usual.scale_up_percent),
        }
    }

    fn proactive_config(&self) -> ProactiveConfig {
        ProactiveConfig {
            rpm: self.rpm,
            tpm: self.tpm,
            itpm: self.itpm,
            otpm: self.otpm,
            connections: self.max_connections(),
            burst: self.burst,
        }
    }
}
