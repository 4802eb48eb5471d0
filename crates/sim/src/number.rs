//! Numbers in what users write, refused at their own place in the file when they make no sense.

use serde::de::{Deserialize, Deserializer, Error};

/// Above zero and finite.
pub(crate) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number > 0.0 {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not a positive number")))
    }
}

/// Zero or above, and finite.
pub(crate) fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not zero or a positive number")))
    }
}

/// The size of a bucket: a bucket below one would never let anything through.
pub(crate) fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number >= 1.0 {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not at least 1")))
    }
}

/// A whole number from 1.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(D::Error::custom("0 is not at least 1")),
        number => Ok(number),
    }
}

/// As [`not_negative`], for a key that may be absent.
pub(crate) fn some_not_negative<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    not_negative(d).map(Some)
}

/// As [`count`], for a key that may be absent.
pub(crate) fn some_count<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    count(d).map(Some)
}

/// How many requests a benchmark makes: more than this is a slip, and would take for ever.
pub(crate) fn some_items<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    const MOST: u64 = 10_000_000;
    match count(d)? {
        number if number > MOST => {
            Err(D::Error::custom(format!("{number} is more than {MOST}, the most there can be")))
        }
        number => Ok(Some(number)),
    }
}

/// A probability.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err(D::Error::custom(format!("{number} is not between 0 and 1")))
    }
}

/// As [`share`], for a key that may be absent.
pub(crate) fn some_share<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    share(d).map(Some)
}

/// A status that means failure.
pub(crate) fn error_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let status = u16::deserialize(deserializer)?;
    if (400..=599).contains(&status) {
        Ok(status)
    } else {
        Err(D::Error::custom(format!("{status} is not an error status (400 to 599)")))
    }
}
