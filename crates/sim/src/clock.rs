//! Time formats of rate-limit headers. Reads no clock.

use chrono::{DateTime, SecondsFormat, Utc};
use std::time::Duration;

/// Formats a duration as Go does, in whole milliseconds or finer: `12ms`, `3.334ms`, `7.66s`, `6m0s`.
pub(crate) fn go_duration(duration: Duration) -> String {
    // Rounded up, so that a reset is never announced too early.
    let micros = duration.as_nanos().div_ceil(1000);
    if micros == 0 {
        return "0s".into();
    }
    if micros < 1_000_000 {
        return format!("{}ms", decimal(micros));
    }
    let millis = micros.div_ceil(1000);
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    let seconds = decimal(rest);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Formats thousandths as a decimal number without trailing zeros.
fn decimal(thousandths: u128) -> String {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns whole seconds, rounded up.
pub(crate) fn ceil_seconds(duration: Duration) -> u64 {
    let up = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(up)
}

/// Formats seconds with three decimals, rounded up.
pub(crate) fn exact_seconds(duration: Duration) -> String {
    let millis = ceil_millis(duration);
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// Returns whole milliseconds, rounded up.
pub(crate) fn ceil_millis(duration: Duration) -> u128 {
    duration.as_nanos().div_ceil(1_000_000)
}

/// Formats a time since 1970 as an HTTP date, rounded up to whole seconds.
pub(crate) fn http_date(since_1970: Duration) -> Option<String> {
    let time = date_time(since_1970)?;
    Some(time.format("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

/// Formats a time since 1970 as RFC 3339, rounded up to whole seconds.
pub(crate) fn rfc3339(since_1970: Duration) -> Option<String> {
    let time = date_time(since_1970)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

fn date_time(since_1970: Duration) -> Option<DateTime<Utc>> {
    let seconds = i64::try_from(ceil_seconds(since_1970)).ok()?;
    DateTime::from_timestamp(seconds, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_the_go_format() {
        let written: Vec<String> = [0, 12_000, 3_333, 7_660_000, 360_000_000, 179_560_000]
            .map(|micros| go_duration(Duration::from_micros(micros)))
            .into();
        assert_eq!(written, ["0s", "12ms", "3.333ms", "7.66s", "6m0s", "2m59.56s"]);
        assert_eq!(go_duration(Duration::from_secs(86_400)), "24h0m0s");
        assert_eq!(go_duration(Duration::from_nanos(999_999_999)), "1s");
    }

    #[test]
    fn wait_times_are_rounded_up() {
        let wait = Duration::from_nanos(1_200_000_001);
        assert_eq!(ceil_seconds(wait), 2);
        assert_eq!(exact_seconds(wait), "1.201");
        assert_eq!(ceil_millis(wait), 1201);
        assert_eq!(ceil_seconds(Duration::from_secs(2)), 2);
    }

    #[test]
    fn dates_use_http_and_rfc_3339_formats() {
        // The example date of RFC 9110.
        let date = Duration::from_millis(784_111_776_500);
        assert_eq!(http_date(date).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(rfc3339(date).unwrap(), "1994-11-06T08:49:37Z");
        assert_eq!(http_date(Duration::MAX), None);
    }
}
