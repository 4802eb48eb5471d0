//! Parsers of argument values.

use bakeoff_stats::Threshold;
use bakeoff_suite::MAX_TRIALS;
use std::num::IntErrorKind;
use std::time::Duration;

pub(super) fn trials(text: &str) -> Result<u32, String> {
    let trials = text.parse().ok().filter(|trials| (1..=MAX_TRIALS).contains(trials));
    trials.ok_or_else(|| {
        format!("must be from 1 to {MAX_TRIALS}, not {text} [EVAL_INVALID_TRIALS_CONFIG]")
    })
}

/// Parses a whole number of at least 1.
pub(super) fn positive<N: TryFrom<i128>>(text: &str) -> Result<N, String> {
    at_least(1, text)
}

/// Parses a whole number of at least 0.
pub(super) fn whole<N: TryFrom<i128>>(text: &str) -> Result<N, String> {
    at_least(0, text)
}

fn at_least<N: TryFrom<i128>>(min: i128, text: &str) -> Result<N, String> {
    match text.parse::<i128>() {
        Ok(number) if number < min => Err(format!("must be at least {min}")),
        Ok(number) => N::try_from(number).map_err(|_| format!("`{text}` is too large")),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(format!("`{text}` is too large"))
        }
        Err(_) => Err(format!("`{text}` is not a whole number")),
    }
}

/// Parses a number of days such as `30d`.
pub(super) fn days(text: &str) -> Result<Duration, String> {
    const SECONDS_PER_DAY: u64 = 24 * 3600;
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    days.map(|days| Duration::from_secs(u64::from(days) * SECONDS_PER_DAY))
        .ok_or_else(|| format!("`{text}` is not a number of days such as 30d"))
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
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let seconds = seconds.ok_or_else(|| format!("`{text}` is not a number of seconds above 0"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration.is_zero() => Err(format!("`{text}` is less than a nanosecond")),
        Ok(duration) => Ok(duration),
        Err(_) => Err(format!("`{text}` seconds are too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_state_the_bound() {
        assert_eq!(positive::<u64>("7"), Ok(7));
        assert_eq!(positive::<u64>("0").unwrap_err(), "must be at least 1");
        assert_eq!(positive::<u64>("-5").unwrap_err(), "must be at least 1");
        assert_eq!(whole::<u64>("0"), Ok(0));
        assert_eq!(whole::<u64>("-1").unwrap_err(), "must be at least 0");
        assert_eq!(positive::<u32>("4294967296").unwrap_err(), "`4294967296` is too large");
        let digits = "9".repeat(40);
        assert_eq!(positive::<u64>(&digits).unwrap_err(), format!("`{digits}` is too large"));
        assert_eq!(positive::<u64>("x").unwrap_err(), "`x` is not a whole number");
        for text in ["0", "1001", "99999999999999"] {
            let error = trials(text).unwrap_err();
            let expected =
                format!("must be from 1 to 1000, not {text} [EVAL_INVALID_TRIALS_CONFIG]");
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn seconds_are_positive_and_representable() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("1e300").unwrap_err(), "`1e300` seconds are too long");
        assert_eq!(seconds("1e-300").unwrap_err(), "`1e-300` is less than a nanosecond");
        for text in ["0", "-1", "nan", "x"] {
            let expected = format!("`{text}` is not a number of seconds above 0");
            assert_eq!(seconds(text).unwrap_err(), expected);
        }
    }
}
