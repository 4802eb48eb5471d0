//! Strategies of the comparison, as `limits` of a suite.

use std::fmt;
use std::str::FromStr;

/// Maximum number of requests in flight of strategies without a limit of their own, as `auto` has by default.
pub(crate) const CEILING: u32 = 1000;

/// A strategy of `bakeoff run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorldStrategy {
    /// The default strategy.
    Auto,
    /// Adaptive concurrency limit.
    Adaptive,
    /// Waits one minute after a rejection.
    Reactive,
    /// Configured with the true limit; only for providers whose limit is per minute.
    Proactive,
    /// No pacing, only retries.
    None,
    /// Fixed concurrency limit.
    Fixed(u32),
}

impl WorldStrategy {
    const NAMED: [WorldStrategy; 5] = [
        WorldStrategy::Auto,
        WorldStrategy::Adaptive,
        WorldStrategy::Reactive,
        WorldStrategy::Proactive,
        WorldStrategy::None,
    ];

    /// Returns the keys of `limits`; `None` if the strategy needs a limit that is not given.
    pub(crate) fn limits(self, rpm: Option<u32>) -> Option<String> {
        let keys = match self {
            WorldStrategy::Auto | WorldStrategy::Adaptive => String::new(),
            WorldStrategy::Reactive | WorldStrategy::None => format!(", connections = {CEILING}"),
            WorldStrategy::Proactive => format!(", rpm = {}", rpm?),
            WorldStrategy::Fixed(connections) => {
                return Some(format!("strategy = \"fixed\", connections = {connections}"));
            }
        };
        Some(format!("strategy = \"{self}\"{keys}"))
    }
}

impl fmt::Display for WorldStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorldStrategy::Auto => f.pad("auto"),
            WorldStrategy::Adaptive => f.pad("adaptive"),
            WorldStrategy::Reactive => f.pad("reactive"),
            WorldStrategy::Proactive => f.pad("proactive"),
            WorldStrategy::None => f.pad("none"),
            WorldStrategy::Fixed(connections) => f.pad(&format!("fixed-{connections}")),
        }
    }
}

impl FromStr for WorldStrategy {
    type Err = String;

    fn from_str(text: &str) -> Result<WorldStrategy, String> {
        let named = WorldStrategy::NAMED.into_iter().find(|one| one.to_string() == text);
        let number = text.strip_prefix("fixed-").and_then(|number| number.parse().ok());
        let fixed = number.filter(|number| *number > 0).map(WorldStrategy::Fixed);
        named.or(fixed).ok_or_else(|| {
            let names = WorldStrategy::NAMED.map(|one| one.to_string()).join(", ");
            format!("`{text}` is not one of {names}, or fixed-N")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_parse_and_others_are_rejected() {
        for strategy in WorldStrategy::NAMED {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        assert_eq!("fixed-7".parse(), Ok(WorldStrategy::Fixed(7)));
        for text in ["fixed-0", "fixed", "cubic", ""] {
            let error = text.parse::<WorldStrategy>().unwrap_err();
            assert!(error.starts_with(&format!("`{text}` is not one of auto, ")), "{error}");
        }
    }

    #[test]
    fn proactive_needs_a_limit_per_minute() {
        assert_eq!(WorldStrategy::Proactive.limits(None), None);
        let limits = WorldStrategy::Proactive.limits(Some(10)).unwrap();
        assert_eq!(limits, "strategy = \"proactive\", rpm = 10");
        let limits = WorldStrategy::Fixed(3).limits(None).unwrap();
        assert_eq!(limits, "strategy = \"fixed\", connections = 3");
    }
}
