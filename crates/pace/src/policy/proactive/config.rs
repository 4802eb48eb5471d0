//! Configuration of `proactive`.

use crate::Dimension;

/// The limits per minute of `proactive`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProactiveConfig {
    /// Requests per minute.
    pub rpm: Option<u64>,
    /// Tokens of prompts and completions per minute.
    pub tpm: Option<u64>,
    /// Tokens of prompts per minute.
    pub itpm: Option<u64>,
    /// Tokens of completions per minute.
    pub otpm: Option<u64>,
    /// Maximum number of requests in flight.
    pub connections: Option<u32>,
    /// Requests sent at once; `rpm` if absent.
    pub burst: Option<u32>,
}

impl ProactiveConfig {
    /// Checks for missing and invalid limits.
    pub fn check(&self) -> Result<(), ProactiveConfigError> {
        if self.connections == Some(0) {
            return Err(ProactiveConfigError::Zero("connections"));
        }
        if self.burst == Some(0) {
            return Err(ProactiveConfigError::Zero("burst"));
        }
        if let Some((_, name, _)) = self.limits().find(|(_, _, limit)| *limit == 0) {
            return Err(ProactiveConfigError::Zero(name));
        }
        match self.limits().next() {
            Some(_) => Ok(()),
            None => Err(ProactiveConfigError::NoLimit),
        }
    }

    /// Returns the configured limits with their names.
    pub(super) fn limits(&self) -> impl Iterator<Item = (Dimension, &'static str, u64)> + use<> {
        let limits = [
            (Dimension::Requests, "rpm", self.rpm),
            (Dimension::Tokens, "tpm", self.tpm),
            (Dimension::InputTokens, "itpm", self.itpm),
            (Dimension::OutputTokens, "otpm", self.otpm),
        ];
        let configured =
            |(dimension, name, limit): (_, _, Option<u64>)| Some((dimension, name, limit?));
        limits.into_iter().filter_map(configured)
    }
}

/// A missing or invalid limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProactiveConfigError {
    /// No limit is configured.
    #[error("the strategy proactive needs rpm or tpm (or itpm, otpm)")]
    NoLimit,
    /// A limit of zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
}
