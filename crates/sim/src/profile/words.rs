//! The two words of a profile that choose what headers say.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::time::Duration;

/// Which headers tell about the limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderStyle {
    /// None.
    #[default]
    None,
    /// `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, resets as Go durations.
    #[serde(rename = "openai")]
    OpenAi,
    /// `anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}`, resets as dates.
    Anthropic,
    /// OpenAI's names; the requests are those of the day where there is a daily quota.
    Groq,
    /// Only what a rejected request is told about waiting; rounded up when `retry_after` is none.
    RetryAfterOnly,
    /// OpenAI's names with values that are not true. The seed chooses the lie: −1, 0, always full,
    /// or the day's limit under the minute's name, by `seed % 4`.
    Wrong,
}

/// What a rejected request is told about waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RetryHint {
    /// Nothing.
    #[default]
    None,
    /// Seconds with three decimals, until it would be admitted.
    Exact,
    /// Whole seconds, rounded up.
    Ceil,
    /// Whole seconds until the limit is fully restored.
    Full,
    /// Always the same, such as `60s`.
    Fixed(Duration),
    /// The date at which it would be admitted, in whole seconds.
    HttpDate,
    /// Milliseconds, in `retry-after-ms`.
    Ms,
    /// Always 0.
    Zero,
    /// Something that is no time.
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
