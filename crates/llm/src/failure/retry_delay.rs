//! The wait that a provider asks for.

use super::report::ErrorReport;
use bakeoff_pace::retry_after;
use http::HeaderMap;
use std::time::{Duration, SystemTime};

/// Pairs of headers: the remaining quota, and the time until it is restored.
const QUOTA_HEADERS: [(&str, &str); 6] = [
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
];

/// Returns the wait from the most precise source: the headers for this request, then the body, then the reset
/// time of exhausted limits, which is later than needed.
pub(super) fn find(
    headers: Option<&HeaderMap>,
    report: &ErrorReport,
    message: &str,
    now: SystemTime,
) -> Option<Duration> {
    let header = |name: &str| headers?.get(name)?.to_str().ok();
    header("retry-after-ms")
        .and_then(parse_milliseconds)
        .or_else(|| retry_after(header("retry-after")?, now))
        .or_else(|| retry_after(report.retry_delay.as_deref()?, now))
        .or_else(|| parse_message(message, now))
        .or_else(|| {
            let is_exhausted = |remaining: &str| header(remaining).is_some_and(|n| n.trim() == "0");
            QUOTA_HEADERS
                .iter()
                .filter(|(remaining, _)| is_exhausted(remaining))
                .filter_map(|(_, reset)| retry_after(header(reset)?, now))
                .max()
        })
}

fn parse_milliseconds(text: &str) -> Option<Duration> {
    let millis = text.trim().parse::<f64>().ok()?;
    Duration::try_from_secs_f64(millis / 1e3).ok()
}

/// Parses messages such as "Please retry in 8.94s." and "Please try again in 6m0s.".
fn parse_message(message: &str, now: SystemTime) -> Option<Duration> {
    let after = ["retry in ", "try again in "]
        .iter()
        .find_map(|phrase| message.split_once(phrase).map(|(_, after)| after))?;
    let mut words = after.split_whitespace();
    // Punctuation at the end belongs to the sentence.
    let amount = words.next()?.trim_end_matches(['.', ',', ';', ')']);
    let scaled = |factor| retry_after(amount, now).map(|count| count.saturating_mul(factor));
    match words.next().map(|unit| unit.trim_end_matches(['.', ',', ';', ')'])) {
        Some("ms" | "millisecond" | "milliseconds") => parse_milliseconds(amount),
        Some("minute" | "minutes") => scaled(60),
        Some("hour" | "hours") => scaled(3600),
        Some("day" | "days") => scaled(86_400),
        _ => retry_after(amount, now),
    }
}
