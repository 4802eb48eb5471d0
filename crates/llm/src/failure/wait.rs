//! How long the provider asks to wait.

use super::report::Report;
use bakeoff_pace::retry_after;
use http::HeaderMap;
use std::time::{Duration, SystemTime};

/// Headers that tell when a limit is whole again, each with the header that tells what is left.
const RESETS: [(&str, &str); 6] = [
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
];

/// The most exact statement first: what is asked for this request, then what the body says, then
/// when the used-up limits are whole again, which is later than needed.
pub(super) fn hint(
    headers: Option<&HeaderMap>,
    report: &Report,
    message: &str,
    now: SystemTime,
) -> Option<Duration> {
    let header = |name: &str| headers?.get(name)?.to_str().ok();
    header("retry-after-ms")
        .and_then(milliseconds)
        .or_else(|| retry_after(header("retry-after")?, now))
        .or_else(|| retry_after(report.retry_delay.as_deref()?, now))
        .or_else(|| in_words(message, now))
        .or_else(|| {
            let used_up = |left: &str| header(left).is_some_and(|left| left.trim() == "0");
            let whole_again = |reset: &str| retry_after(header(reset)?, now);
            RESETS
                .iter()
                .filter(|(left, _)| used_up(left))
                .filter_map(|(_, reset)| whole_again(reset))
                .max()
        })
}

fn milliseconds(text: &str) -> Option<Duration> {
    let millis = text.trim().parse::<f64>().ok()?;
    Duration::try_from_secs_f64(millis / 1e3).ok()
}

/// From "Please retry in 8.94s." and "Please try again in 6m0s.".
fn in_words(message: &str, now: SystemTime) -> Option<Duration> {
    let after = ["retry in ", "try again in "]
        .iter()
        .find_map(|words| message.split_once(words).map(|(_, after)| after))?;
    let mut words = after.split_whitespace();
    // The dot at the end belongs to the sentence.
    let amount = words.next()?.trim_end_matches(['.', ',', ';', ')']);
    match words.next().map(|unit| unit.trim_end_matches(['.', ',', ';', ')'])) {
        Some("ms" | "millisecond" | "milliseconds") => milliseconds(amount),
        Some("minute" | "minutes") => {
            retry_after(amount, now).map(|minutes| minutes.saturating_mul(60))
        }
        _ => retry_after(amount, now),
    }
}
