//! When a limit is whole again.

use super::Reset;
use crate::retry_after;
use std::time::{Duration, SystemTime};

/// Reads a reset in any of the forms that providers use. One that is not in the future says
/// nothing: clocks differ.
pub(super) fn reset(text: &str, now: SystemTime) -> Option<Reset> {
    let text = text.trim();
    let (wait, coarse) = match text.parse::<f64>() {
        Ok(number) => (plain(number, text, now)?, is_whole(text) && number < EPOCH_MILLIS),
        // Go's durations are as exact as they are written; dates have colons.
        Err(_) => (retry_after(text, now)?, text.contains(':') && is_whole(text)),
    };
    (!wait.is_zero()).then_some((wait, coarse))
}

/// Above this a number is a date in milliseconds, as for [`retry_after`].
const EPOCH_MILLIS: f64 = 1e12;

/// Above this it is a date in seconds: no limit takes 30 years to fill.
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
