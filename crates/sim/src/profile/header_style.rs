//! Settings of a profile for rate-limit and retry headers.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::time::Duration;

/// Format of the rate-limit headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderStyle {
    /// No headers.
    #[default]
    None,
    /// `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, resets as Go durations.
    #[serde(rename = "openai")]
    OpenAi,
    /// `anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}`, resets as dates.
    Anthropic,
    /// OpenAI's names; the request headers describe the daily quota, where there is one.
    Groq,
    /// Only the retry header of rejections; rounded up when `retry_after` is none.
    RetryAfterOnly,
    /// OpenAI's names with wrong values, selected by `seed % 4`: −1, 0, always full, or the daily
    /// limit under the name of the limit per minute.
    Wrong,
}

/// Value of the retry header of a rejection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RetryHint {
    /// No header.
    #[default]
    None,
    /// Seconds with three decimals until the request would be admitted.
    Exact,
    /// Whole seconds until the request would be admitted, rounded up.
    Ceil,
    /// Whole seconds until the limit is fully restored.
    Full,
    /// A constant, such as `60s`.
    Fixed(Duration),
    /// Date at which the request would be admitted, in whole seconds.
    HttpDate,
    /// Milliseconds, in `retry-after-ms`.
    Ms,
    /// Always 0.
    Zero,
    /// A text that is not a time.
    Garbage,
}

impl<'de> Deserialize<'de> for RetryHint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let seconds = |word: &str| word.strip_suffix('s').and_then(|digits| digits.parse().ok());
        Ok(match word.as_str() {
            "none" => RetryHint::None,
            "exact" => RetryHint::Exact,
            "ceil" => RetryHint::Ceil,
            "full" => RetryHint::Full,
            "http-date" => RetryHint::HttpDate,
            "ms" => RetryHint::Ms,
            "zero" => RetryHint::Zero,
            "garbage" => RetryHint::Garbage,
            word => match seconds(word) {
                Some(seconds) => RetryHint::Fixed(Duration::from_secs(seconds)),
                None => {
                    return Err(D::Error::custom(format!(
                        "`{word}` is not one of none, exact, ceil, full, http-date, ms, zero, \
                         garbage, or whole seconds such as 60s"
                    )));
                }
            },
        })
    }
}
