//! Validated numbers of user-written files. Errors carry the position of the number.

use serde::de::{Deserialize, Deserializer, Error};

/// Deserializes a positive finite number.
pub(crate) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number > 0.0 {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not a positive number")))
    }
}

/// Deserializes a finite number that is zero or positive.
pub(crate) fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not zero or a positive number")))
    }
}

/// Deserializes a bucket size: a bucket smaller than one would never admit a request.
pub(crate) fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number >= 1.0 {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not at least 1")))
    }
}

/// Deserializes a whole number from 1.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(D::Error::custom("0 is not at least 1")),
        number => Ok(number),
    }
}

/// Deserializes like [`not_negative`], for an optional key.
pub(crate) fn some_not_negative<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    not_negative(d).map(Some)
}

/// Deserializes like [`count`], for an optional key.
pub(crate) fn some_count<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    count(d).map(Some)
}

/// Deserializes the status of rejections.
pub(crate) fn some_reject_status<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u16>, D::Error> {
    match u16::deserialize(d)? {
        status @ (429 | 503 | 529) => Ok(Some(status)),
        status => Err(D::Error::custom(format!(
            "{status} is not a status of rejections (429, 503 or 529)"
        ))),
    }
}

/// Deserializes the number of requests of a benchmark. The bound catches typing errors that would
/// make a benchmark run for days.
pub(crate) fn some_items<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    const MAX_ITEMS: u64 = 10_000_000;
    match count(d)? {
        number if number > MAX_ITEMS => {
            Err(D::Error::custom(format!("{number} is more than the maximum of {MAX_ITEMS}")))
        }
        number => Ok(Some(number)),
    }
}

/// Deserializes a probability.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not between 0 and 1")))
    }
}

/// Deserializes like [`share`], for an optional key.
pub(crate) fn some_share<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    share(d).map(Some)
}

/// Deserializes an HTTP error status.
pub(crate) fn error_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let status = u16::deserialize(deserializer)?;
    if (400..=599).contains(&status) {
        Ok(status)
    } else {
        Err(D::Error::custom(format!("{status} is not an error status (400 to 599)")))
    }
}
