//! How a window that adapts is written: `true`, `false`, `80`, `4-80`, `4-20-80`.

use std::str::FromStr;

/// Between what an adaptive window moves, and where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptiveBounds {
    /// It never gets narrower.
    pub min: u32,
    /// Its width before anything is known.
    pub start: u32,
    /// It never gets wider.
    pub max: u32,
}

impl Default for AdaptiveBounds {
    fn default() -> Self {
        AdaptiveBounds { min: 4, start: 20, max: 200 }
    }
}

impl AdaptiveBounds {
    /// From `min` to `max`, beginning at the usual place or as near to it as that allows.
    pub fn between(min: u32, max: u32) -> AdaptiveBounds {
        let start = AdaptiveBounds::default().start.max(min).min(max);
        AdaptiveBounds { min, start, max }
    }

    /// At most `max`, and the usual otherwise.
    pub fn up_to(max: u32) -> AdaptiveBounds {
        AdaptiveBounds::between(AdaptiveBounds::default().min.min(max), max)
    }

    /// Whether 1 <= min <= start <= max.
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

/// Whether a window adapts, and between what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdaptiveConnections {
    /// It does.
    On(AdaptiveBounds),
    /// It does not.
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
    // Nothing but digits, so only their number can be wrong.
    part.parse().map_err(|_| ConnectionsError::TooLarge { part: part.to_owned() })
}

/// What is wrong with the bounds of a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionsError {
    /// Nothing there.
    #[error("no value given")]
    Empty,
    /// Neither a word that is known nor a number.
    #[error("{text:?} is neither true, false nor a number")]
    UnknownWord {
        /// What is there.
        text: String,
    },
    /// Nothing before, after or between hyphens.
    #[error("{text:?} has an empty part")]
    EmptyPart {
        /// What is there.
        text: String,
    },
    /// More than min, start and max.
    #[error("{text:?} has {parts} parts, but there are only min, start and max")]
    TooManyParts {
        /// What is there.
        text: String,
        /// How many parts it has.
        parts: usize,
    },
    /// A part that is not a number.
    #[error("{part:?} is not a whole number")]
    NotANumber {
        /// The part.
        part: String,
    },
    /// A number beyond all that is possible.
    #[error("{part} is too large, at most {most} is possible", most = u32::MAX)]
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
    /// Nothing between min and max.
    #[error("max {max} is below min {min}")]
    MaxBelowMin {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// A start out of the range.
    #[error("start {start} is below min {min}")]
    StartBelowMin {
        /// The least.
        min: u32,
        /// Where it should begin.
        start: u32,
    },
    /// A start out of the range.
    #[error("start {start} is above max {max}")]
    StartAboveMax {
        /// Where it should begin.
        start: u32,
        /// The most.
        max: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
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
    fn every_mistake_has_its_own_message() {
        let table = [
            ("", "no value given"),
            ("  ", "no value given"),
            ("nope", r#""nope" is neither true, false nor a number"#),
            ("4.5", r#""4.5" is neither true, false nor a number"#),
            ("+5", r#""+5" is neither true, false nor a number"#),
            ("-5", r#""-5" has an empty part"#),
            ("5-", r#""5-" has an empty part"#),
            ("4--80", r#""4--80" has an empty part"#),
            ("1-2-3-4", r#""1-2-3-4" has 4 parts, but there are only min, start and max"#),
            ("a-80", r#""a" is not a whole number"#),
            ("4-b", r#""b" is not a whole number"#),
            ("4-c-80", r#""c" is not a whole number"#),
            ("4-4294967296", "4294967296 is too large, at most 4294967295 is possible"),
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
