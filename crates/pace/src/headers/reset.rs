//! Parsing of reset times.

use super::Reset;
use crate::retry_after;
use std::time::{Duration, SystemTime};

/// Parses a reset in any format that providers use. Resets that are not in the future are omitted,
/// because clocks differ.
pub(super) fn reset(text: &str, now: SystemTime) -> Option<Reset> {
    let text = text.trim();
    let (wait, coarse) = match text.parse::<f64>() {
        Ok(number) => (plain(number, text, now)?, is_whole(text) && number < EPOCH_MILLIS),
        // Go durations are exact as written; dates contain colons.
        Err(_) => (retry_after(text, now)?, text.contains(':') && is_whole(text)),
    };
    (!wait.is_zero()).then_some((wait, coarse))
}

/// A number from here on is a date in milliseconds, as for [`retry_after`].
const EPOCH_MILLIS: f64 = 1e12;

/// A number from here on is a date in seconds: no limit takes 30 years to refill.
const EPOCH_SECONDS: f64 = 1e9;

fn plain(number: f64, text: &str, now: SystemTime) -> Option<Duration> {
    if (EPOCH_SECONDS..EPOCH_MILLIS).contains(&number) {
        let date = Duration::try_from_secs_f64(number).ok()?;
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        return Some(date.saturating_sub(since_epoch));
    }
    retry_after(text, now)
}

fn is_whole(text: &str) -> bool {
    !text.contains('.')
}
