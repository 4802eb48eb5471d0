//! The shorthand for adaptive connections: `true`, `false`, `80`, `4-80`, `4-20-80`.

use std::str::FromStr;

/// The bounds of an adaptive concurrency limit and its initial value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptiveBounds {
    /// Lower bound.
    pub min: u32,
    /// Initial value.
    pub start: u32,
    /// Upper bound.
    pub max: u32,
}

impl Default for AdaptiveBounds {
    fn default() -> Self {
        AdaptiveBounds { min: 4, start: 20, max: 200 }
    }
}

impl AdaptiveBounds {
    /// Creates bounds from `min` to `max` that start at the default, clamped to the range.
    pub fn between(min: u32, max: u32) -> AdaptiveBounds {
        let start = AdaptiveBounds::default().start.max(min).min(max);
        AdaptiveBounds { min, start, max }
    }

    /// Creates the default bounds with another `max`; `min` and `start` are clamped to it.
    pub fn up_to(max: u32) -> AdaptiveBounds {
        AdaptiveBounds::between(AdaptiveBounds::default().min.min(max), max)
    }

    /// Checks that 1 <= min <= start <= max.
    pub fn check(self) -> Result<(), ConnectionsError> {
        let AdaptiveBounds { min, start, max } = self;
        if max == 0 {
            return Err(ConnectionsError::ZeroMax);
        }
        if min == 0 {
            return Err(ConnectionsError::ZeroMin);
        }
        if max < min {
            return Err(ConnectionsError::MaxBelowMin { min, max });
        }
        if start < min {
            return Err(ConnectionsError::StartBelowMin { min, start });
        }
        if start > max {
            return Err(ConnectionsError::StartAboveMax { start, max });
        }
        Ok(())
    }
}

/// Whether the concurrency limit adapts, and within which bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdaptiveConnections {
    /// It adapts within these bounds.
    On(AdaptiveBounds),
    /// It does not adapt.
    Off,
}

impl FromStr for AdaptiveConnections {
    type Err = ConnectionsError;

    fn from_str(text: &str) -> Result<Self, ConnectionsError> {
        let text = text.trim();
        let is = |words: [&str; 2]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        if text.is_empty() {
            return Err(ConnectionsError::Empty);
        }
        if is(["true", "yes"]) {
            return Ok(AdaptiveConnections::On(AdaptiveBounds::default()));
        }
        if is(["false", "no"]) {
            return Ok(AdaptiveConnections::Off);
        }
        let parts: Vec<&str> = text.split('-').map(str::trim).collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(ConnectionsError::EmptyPart { text: text.to_owned() });
        }
        let bounds = match *parts {
            [word] if !is_number(word) => {
                return Err(ConnectionsError::UnknownWord { text: text.to_owned() });
            }
            [max] => AdaptiveBounds::up_to(number(max)?),
            [min, max] => AdaptiveBounds::between(number(min)?, number(max)?),
            [min, start, max] => {
                AdaptiveBounds { min: number(min)?, start: number(start)?, max: number(max)? }
            }
            _ => {
                let (text, parts) = (text.to_owned(), parts.len());
                return Err(ConnectionsError::TooManyParts { text, parts });
            }
        };
        bounds.check()?;
        Ok(AdaptiveConnections::On(bounds))
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(part: &str) -> Result<u32, ConnectionsError> {
    if !is_number(part) {
        return Err(ConnectionsError::NotANumber { part: part.to_owned() });
    }
    // The part consists of digits, so parsing fails only on overflow.
    part.parse().map_err(|_| ConnectionsError::TooLarge { part: part.to_owned() })
}

/// An invalid shorthand or invalid bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionsError {
    /// Empty text.
    #[error("no value given")]
    Empty,
    /// Neither a known word nor a number.
    #[error("{text:?} is neither true, false nor a number")]
    UnknownWord {
        /// The text as given.
        text: String,
    },
    /// An empty part before, after or between hyphens.
    #[error("{text:?} has an empty part")]
    EmptyPart {
        /// The text as given.
        text: String,
    },
    /// More parts than min, start and max.
    #[error("{text:?} has {parts} parts; expected at most min-start-max")]
    TooManyParts {
        /// The text as given.
        text: String,
        /// Number of parts.
        parts: usize,
    },
    /// A part that is not a number.
    #[error("{part:?} is not a whole number")]
    NotANumber {
        /// The part.
        part: String,
    },
    /// A number that does not fit into 32 bits.
    #[error("{part} is too large; the maximum is {max}", max = u32::MAX)]
    TooLarge {
        /// The number.
        part: String,
    },
    /// A min of zero.
    #[error("min must be at least 1")]
    ZeroMin,
    /// A max of zero.
    #[error("max must be at least 1")]
    ZeroMax,
    /// A max below min.
    #[error("max {max} is below min {min}")]
    MaxBelowMin {
        /// The lower bound.
        min: u32,
        /// The upper bound.
        max: u32,
    },
    /// A start below min.
    #[error("start {start} is below min {min}")]
    StartBelowMin {
        /// The lower bound.
        min: u32,
        /// The initial value.
        start: u32,
    },
    /// A start above max.
    #[error("start {start} is above max {max}")]
    StartAboveMax {
        /// The initial value.
        start: u32,
        /// The upper bound.
        max: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_form() {
        let on = |min, start, max| AdaptiveConnections::On(AdaptiveBounds { min, start, max });
        let table = [
            ("true", on(4, 20, 200)),
            ("Yes", on(4, 20, 200)),
            ("false", AdaptiveConnections::Off),
            ("NO", AdaptiveConnections::Off),
            ("80", on(4, 20, 80)),
            ("10", on(4, 10, 10)),
            ("3", on(3, 3, 3)),
            ("1", on(1, 1, 1)),
            ("4-80", on(4, 20, 80)),
            ("30-60", on(30, 30, 60)),
            ("2-8", on(2, 8, 8)),
            ("5-5", on(5, 5, 5)),
            ("4-40-80", on(4, 40, 80)),
            (" 4 - 40 - 80 ", on(4, 40, 80)),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn each_invalid_shorthand_has_its_own_message() {
        let table = [
            ("", "no value given"),
            ("  ", "no value given"),
            ("nope", r#""nope" is neither true, false nor a number"#),
            ("4.5", r#""4.5" is neither true, false nor a number"#),
            ("+5", r#""+5" is neither true, false nor a number"#),
            ("-5", r#""-5" has an empty part"#),
            ("5-", r#""5-" has an empty part"#),
            ("4--80", r#""4--80" has an empty part"#),
            ("1-2-3-4", r#""1-2-3-4" has 4 parts; expected at most min-start-max"#),
            ("a-80", r#""a" is not a whole number"#),
            ("4-b", r#""b" is not a whole number"#),
            ("4-c-80", r#""c" is not a whole number"#),
            ("4-4294967296", "4294967296 is too large; the maximum is 4294967295"),
            ("0", "max must be at least 1"),
            ("0-5", "min must be at least 1"),
            ("100-50", "max 50 is below min 100"),
            ("100-5-50", "max 50 is below min 100"),
            ("10-5-50", "start 5 is below min 10"),
            ("10-90-80", "start 90 is above max 80"),
        ];
        for (text, expected) in table {
            let message = text.parse::<AdaptiveConnections>().map_err(|error| error.to_string());
            assert_eq!(message, Err(expected.to_owned()), "{text:?}");
        }
    }
}
