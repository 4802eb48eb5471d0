//! The names of the strategies.

use std::fmt;
use std::str::FromStr;

/// A rate-limiting strategy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Detects the limits and stays just below them.
    #[default]
    Auto,
    /// A constant concurrency limit.
    Fixed,
    /// A concurrency limit that grows after answers and shrinks after rejections.
    Adaptive,
    /// Sends everything at once and retries rejected requests when the minute is over.
    Reactive,
    /// Stays within configured limits per minute.
    Proactive,
    /// No rate limiting.
    None,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 6] = [
        Strategy::Auto,
        Strategy::Fixed,
        Strategy::Adaptive,
        Strategy::Reactive,
        Strategy::Proactive,
        Strategy::None,
    ];

    /// Returns the name used in suites and options.
    pub const fn as_str(self) -> &'static str {
        match self {
            Strategy::Auto => "auto",
            Strategy::Fixed => "fixed",
            Strategy::Adaptive => "adaptive",
            Strategy::Reactive => "reactive",
            Strategy::Proactive => "proactive",
            Strategy::None => "none",
        }
    }

    /// Returns whether the strategy uses limits per minute.
    pub(crate) fn uses_rates(self) -> bool {
        matches!(self, Strategy::Auto | Strategy::Proactive)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Strategy, UnknownStrategy> {
        let is_named = |strategy: &Strategy| strategy.as_str().eq_ignore_ascii_case(text);
        let found = Strategy::ALL.into_iter().find(is_named);
        found.ok_or_else(|| UnknownStrategy(text.to_owned()))
    }
}

/// An unknown strategy name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {0:?}; expected auto, fixed, adaptive, reactive, proactive or none")]
pub struct UnknownStrategy(String);
