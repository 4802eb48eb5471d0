//! Parsing of the wait that a provider asks for.

use chrono::DateTime;
use std::time::{Duration, SystemTime};

/// Waits above 30 years are invalid; they could overflow when added to a time.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(1_000_000_000);

/// Parses a wait as providers write it: seconds (`30`, `1.5`), durations (`6m0s`, `500ms`), HTTP
/// dates, RFC 3339 dates, and milliseconds since 1970.
///
/// Returns zero for dates in the past and `None` for anything else.
pub fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    wait(text, since_epoch).filter(|wait| *wait <= MAX_WAIT)
}

fn wait(text: &str, since_epoch: Duration) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        // From here on a number is a date in milliseconds.
        const EPOCH_MILLIS: f64 = 1e12;
        return if number >= EPOCH_MILLIS {
            let date = Duration::try_from_secs_f64(number / 1e3).ok()?;
            Some(date.saturating_sub(since_epoch))
        } else {
            Duration::try_from_secs_f64(number).ok()
        };
    }
    if let Some(duration) = go_duration(text) {
        return Some(duration);
    }
    let date =
        DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text)).ok()?;
    let date = (date.to_utc() - DateTime::UNIX_EPOCH).to_std().ok()?;
    Some(date.saturating_sub(since_epoch))
}

/// Parses a duration as Go prints it: `1h2m3.5s`, `12ms`, `250us`.
fn go_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 8] = [
        ("ms", 1e-3),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ns", 1e-9),
        ("d", 86_400.0),
        ("h", 3600.0),
        ("m", 60.0),
        ("s", 1.0),
    ];
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let (unit, scale) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        seconds += number.parse::<f64>().ok()? * scale;
        rest = &tail[unit.len()..];
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(seconds).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_provider_format() {
        // 2025-01-01T00:00:00Z
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_735_689_600);
        let table: [(&str, Option<u64>); 24] = [
            ("30", Some(30_000)),
            (" 1.5 ", Some(1_500)),
            ("0", Some(0)),
            ("6m0s", Some(360_000)),
            ("500ms", Some(500)),
            ("2m59.56s", Some(179_560)),
            ("1h2m3s", Some(3_723_000)),
            ("Wed, 01 Jan 2025 00:00:20 GMT", Some(20_000)),
            ("Tue, 31 Dec 2024 00:00:00 GMT", Some(0)),
            ("2025-01-01T00:00:05Z", Some(5_000)),
            ("2025-01-01T01:00:05+01:00", Some(5_000)),
            ("1735689607000", Some(7_000)),
            ("", None),
            ("soon", None),
            ("-1", None),
            ("NaN", None),
            ("5x", None),
            ("1e300", None),
            ("999999999", Some(999_999_999_000)),
            ("1000000001", None),
            ("1e22", None),
            ("99999999999h", None),
            ("9999-12-31T23:59:59Z", None),
            ("Thu, 30 Dec 9999 23:59:59 GMT", None),
        ];
        for (text, millis) in table {
            assert_eq!(retry_after(text, now), millis.map(Duration::from_millis), "{text:?}");
        }
    }
}
