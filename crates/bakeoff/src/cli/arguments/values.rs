//! Parsers of argument values.

use bakeoff_stats::Threshold;
use std::time::Duration;

pub(super) fn trials(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a number of trials [EVAL_INVALID_TRIALS_CONFIG]"))
}

pub(super) fn threshold(text: &str) -> Result<Threshold, String> {
    text.parse()
        .map_err(|error: bakeoff_stats::ThresholdError| format!("{error} [EVAL_INVALID_THRESHOLD]"))
}

/// Parses a number strictly between 0 and 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| format!("`{text}` is not a number between 0 and 1"))
}

pub(super) fn non_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("`{text}` is not a number of at least 0"))
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("`{text}` is not a number of seconds above 0"))
}
