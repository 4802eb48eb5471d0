//! The limits that `proactive` keeps to.

use crate::Dimension;

/// What may be sent in a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProactiveConfig {
    /// Requests.
    pub rpm: Option<u64>,
    /// Tokens of prompts and answers.
    pub tpm: Option<u64>,
    /// Tokens of prompts.
    pub itpm: Option<u64>,
    /// Tokens of answers.
    pub otpm: Option<u64>,
    /// Most requests in flight.
    pub connections: Option<u32>,
    /// Requests that may go out at once; a whole minute's when absent.
    pub burst: Option<u32>,
}

impl ProactiveConfig {
    /// Says what is missing or impossible.
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

    /// The limits there are, with their names.
    pub(super) fn limits(&self) -> impl Iterator<Item = (Dimension, &'static str, u64)> + use<> {
        let limits = [
            (Dimension::Requests, "rpm", self.rpm),
            (Dimension::Tokens, "tpm", self.tpm),
            (Dimension::InputTokens, "itpm", self.itpm),
            (Dimension::OutputTokens, "otpm", self.otpm),
        ];
        let given = |(dimension, name, limit): (_, _, Option<u64>)| Some((dimension, name, limit?));
        limits.into_iter().filter_map(given)
    }
}

/// What is missing or impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProactiveConfigError {
    /// No limit at all.
    #[error("the strategy proactive needs rpm or tpm (or itpm, otpm)")]
    NoLimit,
    /// A limit that lets nothing through.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
}
