//! Validation of limits.

use super::{Connections, Limits};
use crate::{AdaptiveConfigError, ConnectionsError, Strategy};

/// Invalid [`Limits`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LimitsError {
    /// A limit of zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A time limit of zero.
    #[error("{0} must be more than 0 seconds")]
    NoTime(&'static str),
    /// A limit per minute with a strategy that does not use it.
    #[error("{key} is for the strategies auto and proactive, not for {strategy}")]
    RateUnused {
        /// The limit.
        key: &'static str,
        /// The strategy.
        strategy: Strategy,
    },
    /// A setting of `adaptive` with another strategy.
    #[error("{key} is for the strategy adaptive, not for {strategy}")]
    NotAdaptive {
        /// The setting.
        key: &'static str,
        /// The strategy.
        strategy: Strategy,
    },
    /// A range of connections with a strategy other than `adaptive`.
    #[error("a range of connections needs the strategy adaptive; {0} takes one number")]
    Range(Strategy),
    /// A setting of `auto` with another strategy.
    #[error("retry_after is for the strategy auto, not for {0}")]
    RetryAfterUnused(Strategy),
    /// A burst without `rpm` or with a strategy other than `proactive`.
    #[error("burst needs the strategy proactive with rpm")]
    BurstUnused,
    /// `proactive` without a limit.
    #[error(
        "the strategy proactive needs rpm or tpm (or itpm, otpm): \
         there is no built-in table of limits"
    )]
    NoRate,
    /// Invalid bounds of `adaptive`.
    #[error("connections: {0}")]
    Bounds(ConnectionsError),
    /// Another setting of `adaptive` that is out of range.
    #[error(transparent)]
    Adaptive(AdaptiveConfigError),
}

impl LimitsError {
    /// Returns the key of the invalid setting.
    pub fn key(&self) -> &'static str {
        match self {
            LimitsError::Zero(key)
            | LimitsError::NoTime(key)
            | LimitsError::RateUnused { key, .. }
            | LimitsError::NotAdaptive { key, .. } => key,
            LimitsError::Range(_) | LimitsError::Bounds(_) => "connections",
            LimitsError::RetryAfterUnused(_) => "retry_after",
            LimitsError::BurstUnused => "burst",
            LimitsError::NoRate => "strategy",
            LimitsError::Adaptive(error) => match error {
                AdaptiveConfigError::Bounds(_) => "connections",
                AdaptiveConfigError::Cooldown(_) => "cooldown_seconds",
                AdaptiveConfigError::DecreaseFactor(_) => "decrease_factor",
                AdaptiveConfigError::ScaleUpPercent(_) => "scale_up_percent",
            },
        }
    }
}

/// Returns the first error.
pub(super) fn check(limits: &Limits) -> Result<(), LimitsError> {
    let strategy = limits.strategy;
    let rates =
        [("rpm", limits.rpm), ("tpm", limits.tpm), ("itpm", limits.itpm), ("otpm", limits.otpm)];
    for (key, rate) in rates {
        match rate {
            Some(0) => return Err(LimitsError::Zero(key)),
            Some(_) if !strategy.uses_rates() => {
                return Err(LimitsError::RateUnused { key, strategy });
            }
            _ => {}
        }
    }
    match limits.burst {
        Some(0) => return Err(LimitsError::Zero("burst")),
        Some(_) if strategy != Strategy::Proactive || limits.rpm.is_none() => {
            return Err(LimitsError::BurstUnused);
        }
        _ => {}
    }
    match limits.connections {
        Some(Connections::Max(0)) => return Err(LimitsError::Zero("connections")),
        Some(Connections::Range(_)) if strategy != Strategy::Adaptive => {
            return Err(LimitsError::Range(strategy));
        }
        _ => {}
    }
    for (key, time) in [("timeout", limits.timeout), ("attempt_timeout", limits.attempt_timeout)] {
        if time.is_some_and(|time| time.is_zero()) {
            return Err(LimitsError::NoTime(key));
        }
    }
    if limits.retry_after.is_some() && strategy != Strategy::Auto {
        return Err(LimitsError::RetryAfterUnused(strategy));
    }
    let tunables = [
        ("cooldown_seconds", limits.cooldown_seconds),
        ("decrease_factor", limits.decrease_factor),
        ("scale_up_percent", limits.scale_up_percent),
    ];
    match strategy {
        Strategy::Adaptive => limits.adaptive_config().check().map_err(|error| match error {
            AdaptiveConfigError::Bounds(error) => LimitsError::Bounds(error),
            error => LimitsError::Adaptive(error),
        }),
        strategy => match tunables.into_iter().find(|(_, value)| value.is_some()) {
            Some((key, _)) => Err(LimitsError::NotAdaptive { key, strategy }),
            None if strategy == Strategy::Proactive && rates.iter().all(|(_, r)| r.is_none()) => {
                Err(LimitsError::NoRate)
            }
            None => Ok(()),
        },
    }
}
