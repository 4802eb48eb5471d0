//! Parsing of rate-limit headers.
//!
//! Providers differ in names, formats and the meaning of a reset. This module parses the values; the
//! strategies interpret them. Gemini and Bedrock send no such headers: they put the wait into the body
//! of the error.

mod draft;
mod reset;
#[cfg(test)]
mod tests;

use crate::hint::MAX_WAIT;
use crate::{Dimension, Quota, QuotaReading, retry_after};
use reset::reset;
use std::time::{Duration, SystemTime};

/// The headers that describe one limit.
struct HeaderNames {
    dimension: Dimension,
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
}

const fn names(
    dimension: Dimension,
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
) -> HeaderNames {
    HeaderNames { dimension, limit, remaining, reset }
}

/// The first valid entry for a dimension wins, so specific names come before generic ones.
const NAMES: [HeaderNames; 15] = [
    // OpenAI, Azure, Groq (which counts requests per day) and compatible providers.
    names(
        Dimension::Requests,
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
    ),
    names(
        Dimension::Tokens,
        "x-ratelimit-limit-tokens",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
    ),
    // Anthropic.
    names(
        Dimension::Requests,
        "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ),
    names(
        Dimension::Tokens,
        "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    ),
    names(
        Dimension::InputTokens,
        "anthropic-ratelimit-input-tokens-limit",
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-input-tokens-reset",
    ),
    names(
        Dimension::OutputTokens,
        "anthropic-ratelimit-output-tokens-limit",
        "anthropic-ratelimit-output-tokens-remaining",
        "anthropic-ratelimit-output-tokens-reset",
    ),
    // Cerebras. Mistral uses the same names for tokens, without a reset.
    names(
        Dimension::Tokens,
        "x-ratelimit-limit-tokens-minute",
        "x-ratelimit-remaining-tokens-minute",
        "x-ratelimit-reset-tokens-minute",
    ),
    names(
        Dimension::Requests,
        "x-ratelimit-limit-requests-day",
        "x-ratelimit-remaining-requests-day",
        "x-ratelimit-reset-requests-day",
    ),
    // Mistral, new and old. In the old format the limit has two names, and one of them may be missing.
    names(
        Dimension::Requests,
        "x-ratelimit-limit-req-minute",
        "x-ratelimit-remaining-req-minute",
        "x-ratelimit-reset-req-minute",
    ),
    names(
        Dimension::Tokens,
        "x-ratelimitbysize-limit-minute",
        "x-ratelimitbysize-remaining-minute",
        "ratelimitbysize-reset",
    ),
    names(
        Dimension::Tokens,
        "ratelimitbysize-limit",
        "x-ratelimitbysize-remaining-minute",
        "ratelimitbysize-reset",
    ),
    names(
        Dimension::Tokens,
        "ratelimitbysize-limit",
        "ratelimitbysize-remaining",
        "ratelimitbysize-reset",
    ),
    // OpenRouter and Together. Together has one reset for requests and tokens.
    names(Dimension::Requests, "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),
    names(Dimension::Tokens, "x-tokenlimit-limit", "x-tokenlimit-remaining", "x-ratelimit-reset"),
    // Early drafts of the IETF.
    names(Dimension::Requests, "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"),
];

/// Parses the rate-limit headers of a response.
///
/// `get` returns the value of the header with that lower-case name; `now` converts dates into
/// durations. Invalid readings (a limit of zero, a negative remainder, not a number) are omitted, and
/// so are resets that are not in the future.
pub fn read_quota<'a>(get: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Quota {
    let mut readings: Vec<QuotaReading> = Vec::new();
    for names in &NAMES {
        if has(&readings, names.dimension) {
            continue;
        }
        // This runs for each response. Most names are absent from most responses, so the other two
        // are looked up only if the first is present.
        let Some(limit) = get(names.limit) else { continue };
        let Some(remaining) = get(names.remaining) else { continue };
        let (Some(limit), Some(remaining)) = (number(limit), number(remaining)) else { continue };
        let reset = get(names.reset).and_then(|text| reset(text, now));
        readings.extend(reading(names.dimension, limit, remaining, reset));
    }
    if let Some(limits) = get("ratelimit") {
        let policies = get("ratelimit-policy").unwrap_or_default();
        for reading in draft::readings(limits, policies) {
            if !has(&readings, reading.dimension) {
                readings.push(reading);
            }
        }
    }
    Quota { readings, retry_after: wait(get, now) }
}

fn wait<'a>(get: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Option<Duration> {
    let is_valid = |wait: &Duration| !wait.is_zero() && *wait <= MAX_WAIT;
    get("retry-after-ms")
        .and_then(number)
        .and_then(|millis| Duration::try_from_secs_f64(millis / 1e3).ok())
        .filter(is_valid)
        .or_else(|| retry_after(get("retry-after")?, now).filter(is_valid))
}

fn has(readings: &[QuotaReading], dimension: Dimension) -> bool {
    readings.iter().any(|reading| reading.dimension == dimension)
}

/// A reset and whether it is given in whole seconds.
type Reset = (Duration, bool);

fn reading(
    dimension: Dimension,
    limit: f64,
    remaining: f64,
    reset: Option<Reset>,
) -> Option<QuotaReading> {
    let is_valid = limit > 0.0 && remaining >= 0.0;
    let reset = reset.filter(|(reset, _)| *reset <= MAX_WAIT);
    let coarse = reset.is_some_and(|(_, coarse)| coarse);
    let reset = reset.map(|(reset, _)| reset);
    is_valid.then_some(QuotaReading { dimension, limit, remaining, reset, coarse })
}

/// Parses a leading number; early IETF drafts allow more after it: `100, 100;w=60`.
fn number(text: &str) -> Option<f64> {
    let text = text.split([',', ';']).next()?;
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}
