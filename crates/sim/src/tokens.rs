//! Token counts: estimated from texts, or drawn from a profile's distribution.

use crate::latency::lognormal;
use bakeoff_core::{Content, Message};
use rand::rngs::ChaCha8Rng;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value};
use std::fmt;

/// Token count of a profile or a model: `400`, or `{ median = 150, sigma = 0.5 }`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TokenCount {
    /// Constant count.
    Fixed(u64),
    /// Log-normal, at least 1.
    Lognormal {
        /// Median count.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

impl TokenCount {
    /// Draws a count.
    pub(crate) fn sample(&self, rng: &mut ChaCha8Rng) -> u64 {
        match *self {
            TokenCount::Fixed(tokens) => tokens,
            // A cast from float to integer saturates.
            TokenCount::Lognormal { median, sigma } => {
                lognormal(median, sigma, rng).round().max(1.0) as u64
            }
        }
    }
}

impl<'de> Deserialize<'de> for TokenCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TokenCountVisitor;
        impl<'de> Visitor<'de> for TokenCountVisitor {
            type Value = TokenCount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of tokens or { median = …, sigma = … }")
            }

            fn visit_u64<E: Error>(self, tokens: u64) -> Result<TokenCount, E> {
                Ok(TokenCount::Fixed(tokens))
            }

            fn visit_i64<E: Error>(self, tokens: i64) -> Result<TokenCount, E> {
                u64::try_from(tokens)
                    .map(TokenCount::Fixed)
                    .map_err(|_| E::custom(format!("{tokens} is not a number of tokens")))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TokenCount, A::Error> {
                let Distribution { median, sigma } =
                    Distribution::deserialize(value::MapAccessDeserializer::new(map))?;
                Ok(TokenCount::Lognormal { median, sigma })
            }
        }
        deserializer.deserialize_any(TokenCountVisitor)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Distribution {
    #[serde(deserialize_with = "crate::number::positive")]
    median: f64,
    #[serde(deserialize_with = "crate::number::not_negative")]
    sigma: f64,
}

/// Characters per token; roughly right for English.
const CHARS_PER_TOKEN: u64 = 4;

/// Estimates the tokens of a number of characters; at least 1.
fn from_chars(chars: u64) -> u64 {
    chars.div_ceil(CHARS_PER_TOKEN).max(1)
}

/// Estimates the tokens of a text; at least 1.
pub(crate) fn count(text: &str) -> u64 {
    from_chars(text.chars().count() as u64)
}

/// Estimates the tokens of a conversation; at least 1. Only texts, images and files count, so the figure does
/// not depend on the wire format.
pub(crate) fn count_prompt(messages: &[Message]) -> u64 {
    let parts = || messages.iter().flat_map(Message::content);
    let texts = parts().map(|part| match part {
        Content::Text { text } => text.chars().count() as u64,
        _ => 0,
    });
    from_chars(texts.sum()) + parts().map(Content::media_tokens).sum::<u64>()
}

/// Truncates a text to a number of tokens.
pub(crate) fn truncate(text: &mut String, tokens: u64) {
    let chars = usize::try_from(tokens.saturating_mul(CHARS_PER_TOKEN)).unwrap_or(usize::MAX);
    if let Some((end, _)) = text.char_indices().nth(chars) {
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_by_characters_not_bytes() {
        assert_eq!(count(""), 1);
        assert_eq!(count("1234"), 1);
        assert_eq!(count("12345"), 2);
        assert_eq!(count("äöüß"), 1);
        assert_eq!(count_prompt(&[Message::user("123"), Message::assistant("456")]), 2);
    }

    #[test]
    fn truncation_keeps_whole_characters() {
        let mut text = "äöüßä".to_owned();
        truncate(&mut text, 1);
        assert_eq!(text, "äöüß");
        truncate(&mut text, 9);
        assert_eq!(text, "äöüß");
        truncate(&mut text, 0);
        assert_eq!(text, "");
    }
}
