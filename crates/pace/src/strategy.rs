//! The names of the strategies.

use std::fmt;
use std::str::FromStr;

/// By what it is decided when a request goes out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Finds out what the limits are and keeps just below them.
    #[default]
    Auto,
    /// So many at once, whatever happens.
    Fixed,
    /// A window that grows while the provider keeps up and shrinks when it does not.
    Adaptive,
    /// Everything at once; after a rejection, when the minute is over.
    Reactive,
    /// Never more in a minute than the limits that were given.
    Proactive,
    /// No pacing.
    None,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 6] = [
        Strategy::Auto,
        Strategy::Fixed,
        Strategy::Adaptive,
        Strategy::Reactive,
        Strategy::Proactive,
        Strategy::None,
    ];

    /// Its name where users write it.
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

    /// Whether limits per minute mean something to it.
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
        let found = Strategy::ALL.into_iter().find(|strategy| strategy.as_str() == text);
        found.ok_or_else(|| UnknownStrategy(text.to_owned()))
    }
}

/// A name that no strategy has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no strategy; there are auto, fixed, adaptive, reactive, proactive and none")]
pub struct UnknownStrategy(String);
