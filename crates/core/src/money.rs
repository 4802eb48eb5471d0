//! Money in integer nano-dollars, so that sums do not depend on their order.

use crate::Usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An amount of US dollars, in units of 10⁻⁹.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NanoDollars(pub i64);

impl NanoDollars {
    /// Returns the sum, saturating at the numeric bounds.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        NanoDollars(self.0.saturating_add(other.0))
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Returns the nearest amount; `None` if `dollars` is not a number or out of range.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let nanos = (dollars * 1e9).round();
        // Every integer below 2^63 in magnitude fits; NaN fails the comparison.
        (nanos.abs() < 9_223_372_036_854_775_808.0).then_some(NanoDollars(nanos as i64))
    }

    /// Returns the amount in dollars, for display only; not for arithmetic.
    pub fn as_dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl std::ops::AddAssign for NanoDollars {
    fn add_assign(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

/// Formats at least two significant digits: `$12.34`, `$0.0056`, `$0.00`.
impl fmt::Display for NanoDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.as_dollars();
        let magnitude = dollars.abs();
        let digits = if magnitude == 0.0 || magnitude >= 0.1 {
            2
        } else {
            // Position of the second significant digit; at most nine decimals.
            (1 - magnitude.log10().floor() as i32).clamp(2, 9) as usize
        };
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}${magnitude:.digits$}")
    }
}

/// Error for a text that is not an amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount in dollars such as 0.15 (at most nine decimals)")]
pub struct ParseMoneyError(String);

/// Parses plain decimal dollars (`3`, `0.15`, `0.0000375`) exactly.
impl FromStr for NanoDollars {
    type Err = ParseMoneyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseMoneyError(text.to_owned());
        let plain = text.trim().replace('_', "");
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty())
            || !is_digits(whole)
            || !is_digits(fraction)
            || fraction.len() > 9
        {
            return Err(error());
        }
        let nanos = format!("{whole}{fraction:0<9}");
        nanos.parse().map(NanoDollars).map_err(|_| error())
    }
}

/// Prices of a model per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Price of prompt tokens.
    pub input: NanoDollars,
    /// Price of answer tokens, including thinking.
    pub output: NanoDollars,
    /// Price of prompt tokens read from the provider's cache; `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<NanoDollars>,
    /// Price of prompt tokens written to the provider's cache; `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<NanoDollars>,
}

impl Prices {
    /// Returns the cost of a usage, rounded once to the nearest nano-dollar.
    pub fn cost(&self, usage: &Usage) -> NanoDollars {
        const MILLION: i128 = 1_000_000;
        let part = |tokens: u64, price: NanoDollars| i128::from(tokens) * i128::from(price.0);
        let sum = part(usage.input, self.input)
            + part(usage.output, self.output)
            + part(usage.cache_read, self.cache_read.unwrap_or(self.input))
            + part(usage.cache_write, self.cache_write.unwrap_or(self.input));
        let rounded = (sum + MILLION / 2).div_euclid(MILLION);
        NanoDollars(i64::try_from(rounded).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(text: &str) -> NanoDollars {
        text.parse().unwrap()
    }

    #[test]
    fn decimal_dollars_are_parsed_exactly() {
        assert_eq!(dollars("3"), NanoDollars(3_000_000_000));
        assert_eq!(dollars("0.15"), NanoDollars(150_000_000));
        assert_eq!(dollars(".0000375"), NanoDollars(37_500));
        assert_eq!(dollars("1_000.5"), NanoDollars(1_000_500_000_000));
        for bad in ["", ".", "-1", "1e3", "NaN", "1.2.3", "0.1234567891", "99999999999999999999"] {
            assert!(NanoDollars::from_str(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn from_dollars_rounds_to_the_nearest_nano_dollar() {
        assert_eq!(NanoDollars::from_dollars(0.1 + 0.2), Some(NanoDollars(300_000_000)));
        assert_eq!(NanoDollars::from_dollars(-1.5e-9), Some(NanoDollars(-2)));
        for bad in [f64::NAN, f64::INFINITY, 1e10, -1e10] {
            assert_eq!(NanoDollars::from_dollars(bad), None, "{bad}");
        }
    }

    #[test]
    fn display_has_two_significant_digits() {
        let shown: Vec<String> = ["12.345", "0.1", "0.0056", "0.00001234", "0", "0.000000001"]
            .iter()
            .map(|text| dollars(text).to_string())
            .collect();
        assert_eq!(shown, ["$12.35", "$0.10", "$0.0056", "$0.000012", "$0.00", "$0.000000001"]);
    }

    #[test]
    fn cost_is_rounded_once_over_all_dimensions() {
        let prices = Prices {
            input: dollars("0.0375"),
            output: dollars("0.15"),
            cache_read: Some(dollars("0.01")),
            cache_write: None,
        };
        // 37.5 + 150 + 10 + 37.5 nano-dollars.
        let usage = Usage { input: 1, output: 1, cache_read: 1, cache_write: 1, reasoning: 1 };
        assert_eq!(prices.cost(&usage), NanoDollars(235));
        let huge = Usage { input: u64::MAX, ..Usage::default() };
        assert_eq!(Prices { input: dollars("100"), ..prices }.cost(&huge), NanoDollars(i64::MAX));
    }
}
