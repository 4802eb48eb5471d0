//! The limits of a pool: strategy, concurrency, rates, retries.
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

/// Default concurrency limit of `fixed`.
const DEFAULT_FIXED_CONNECTIONS: u32 = 10;

/// The limits of a pool and the retries of its calls. Unset fields have the default of the strategy.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The rate-limiting strategy.
    pub strategy: Strategy,
    /// Maximum number of requests in flight, or the bounds of `adaptive`.
    pub connections: Option<Connections>,
    /// Requests per minute.
    pub rpm: Option<u64>,
    /// Tokens of prompts and completions per minute.
    pub tpm: Option<u64>,
    /// Tokens of prompts per minute.
    pub itpm: Option<u64>,
    /// Tokens of completions per minute.
    pub otpm: Option<u64>,
    /// For `proactive`: requests sent at once; `rpm` if absent.
    pub burst: Option<u32>,
    /// For `adaptive`: minimum time between two cuts.
    pub cooldown_seconds: Option<f64>,
    /// For `adaptive`: factor of a cut.
    pub decrease_factor: Option<f64>,
    /// For `adaptive`: growth per round after the first rejection, as a share of the limit.
    pub scale_up_percent: Option<f64>,
    /// For `auto`: handling of a positive `Retry-After`.
    pub retry_after: Option<RetryAfter>,
    /// Maximum number of retries of a call, of any kind.
    pub max_retries: Option<u32>,
    /// Time limit for a call, without waiting for permits.
    pub timeout: Option<Duration>,
    /// Time limit for one attempt.
    pub attempt_timeout: Option<Duration>,
}

/// The limit on requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// A maximum.
    Max(u32),
    /// The bounds of a limit that adapts.
    Range(AdaptiveBounds),
}

impl From<u32> for Connections {
    fn from(max: u32) -> Connections {
        Connections::Max(max)
    }
}

impl From<AdaptiveBounds> for Connections {
    fn from(bounds: AdaptiveBounds) -> Connections {
        Connections::Range(bounds)
    }
}

/// Parses `80`, `4-80` and `4-20-80`.
impl FromStr for Connections {
    type Err = ConnectionsError;

    fn from_str(text: &str) -> Result<Connections, ConnectionsError> {
        match text.parse()? {
            // A single number is a maximum, not a range.
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
    /// Creates limits with the defaults of a strategy.
    pub fn new(strategy: Strategy) -> Limits {
        Limits { strategy, ..Limits::default() }
    }

    /// Creates limits for `auto`, the default, which detects the limits of the provider.
    pub fn auto() -> Limits {
        Limits::new(Strategy::Auto)
    }

    /// Creates a constant concurrency limit.
    pub fn fixed(connections: u32) -> Limits {
        Limits::new(Strategy::Fixed).connections(connections)
    }

    /// Creates a concurrency limit that adapts within these bounds.
    pub fn adaptive(bounds: AdaptiveBounds) -> Limits {
        Limits::new(Strategy::Adaptive).connections(bounds)
    }

    /// Sets the maximum number of requests in flight.
    #[must_use]
    pub fn connections(self, connections: impl Into<Connections>) -> Limits {
        Limits { connections: Some(connections.into()), ..self }
    }

    /// Sets the requests per minute.
    #[must_use]
    pub fn rpm(self, rpm: u64) -> Limits {
        Limits { rpm: Some(rpm), ..self }
    }

    /// Sets the tokens of prompts and completions per minute.
    #[must_use]
    pub fn tpm(self, tpm: u64) -> Limits {
        Limits { tpm: Some(tpm), ..self }
    }

    /// Sets the tokens of prompts per minute.
    #[must_use]
    pub fn itpm(self, itpm: u64) -> Limits {
        Limits { itpm: Some(itpm), ..self }
    }

    /// Sets the tokens of completions per minute.
    #[must_use]
    pub fn otpm(self, otpm: u64) -> Limits {
        Limits { otpm: Some(otpm), ..self }
    }

    /// Sets the requests sent at once, for `proactive`.
    #[must_use]
    pub fn burst(self, burst: u32) -> Limits {
        Limits { burst: Some(burst), ..self }
    }

    /// Sets the minimum time between two cuts, for `adaptive`.
    #[must_use]
    pub fn cooldown_seconds(self, cooldown_seconds: f64) -> Limits {
        Limits { cooldown_seconds: Some(cooldown_seconds), ..self }
    }

    /// Sets the factor of a cut, for `adaptive`.
    #[must_use]
    pub fn decrease_factor(self, decrease_factor: f64) -> Limits {
        Limits { decrease_factor: Some(decrease_factor), ..self }
    }

    /// Sets the growth per round after the first rejection as a share of the limit, for `adaptive`.
    #[must_use]
    pub fn scale_up_percent(self, scale_up_percent: f64) -> Limits {
        Limits { scale_up_percent: Some(scale_up_percent), ..self }
    }

    /// Sets the handling of a positive `Retry-After`, for `auto`.
    #[must_use]
    pub fn retry_after(self, retry_after: RetryAfter) -> Limits {
        Limits { retry_after: Some(retry_after), ..self }
    }

    /// Sets the maximum number of retries of a call.
    #[must_use]
    pub fn max_retries(self, max_retries: u32) -> Limits {
        Limits { max_retries: Some(max_retries), ..self }
    }

    /// Sets the time limit for a call.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Limits {
        Limits { timeout: Some(timeout), ..self }
    }

    /// Sets the time limit for one attempt.
    #[must_use]
    pub fn attempt_timeout(self, attempt_timeout: Duration) -> Limits {
        Limits { attempt_timeout: Some(attempt_timeout), ..self }
    }

    /// Checks for invalid values and for settings of another strategy.
    pub fn check(&self) -> Result<(), LimitsError> {
        error::check(self)
    }

    /// Creates the strategy. Only `auto` uses the limit that an earlier run learned.
    pub fn policy(&self, learned: Option<LearnedLimit>) -> Result<Box<dyn Policy>, LimitsError> {
        self.check()?;
        let max = self.max_connections();
        Ok(match self.strategy {
            Strategy::Auto => Box::new(AutoPolicy::new(self.auto_config(learned))),
            Strategy::Fixed => Box::new(FixedPolicy::new(max.unwrap_or(DEFAULT_FIXED_CONNECTIONS))),
            Strategy::Adaptive => Box::new(AdaptivePolicy::new(self.adaptive_config())),
            Strategy::Reactive => Box::new(ReactivePolicy::new(max)),
            Strategy::Proactive => Box::new(ProactivePolicy::new(self.proactive_config())),
            Strategy::None => Box::new(max.map_or_else(FixedPolicy::unbounded, FixedPolicy::new)),
        })
    }

    /// Returns the retry policy with the settings of these limits applied.
    #[must_use]
    pub fn retry_policy(&self, base: RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            max_retries: self.max_retries.or(base.max_retries),
            timeout: self.timeout.unwrap_or(base.timeout),
            attempt_timeout: self.attempt_timeout.or(base.attempt_timeout),
            ..base
        }
    }

    fn max_connections(&self) -> Option<u32> {
        self.connections.map(|connections| match connections {
            Connections::Max(max) => max,
            Connections::Range(bounds) => bounds.max,
        })
    }

    fn auto_config(&self, learned: Option<LearnedLimit>) -> AutoConfig {
        let default = AutoConfig::default();
        let rate = |limit: Option<u64>| limit.map(|limit| limit as f64);
        AutoConfig {
            connections: self.max_connections().unwrap_or(default.connections),
            retry_after: self.retry_after.unwrap_or(default.retry_after),
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
        let default = AdaptiveConfig::default();
        AdaptiveConfig {
            bounds: match self.connections {
                Some(Connections::Range(bounds)) => bounds,
                Some(Connections::Max(max)) => AdaptiveBounds::up_to(max),
                None => default.bounds,
            },
            cooldown_seconds: self.cooldown_seconds.unwrap_or(default.cooldown_seconds),
            decrease_factor: self.decrease_factor.unwrap_or(default.decrease_factor),
            scale_up_percent: self.scale_up_percent.unwrap_or(default.scale_up_percent),
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
