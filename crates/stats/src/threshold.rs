//! The rule that decides whether enough trials passed.

use std::fmt;
use std::str::FromStr;

/// A share between 0 and 1, parsed from a decimal and stored as an exact fraction.
///
/// In floating point, 7 of 10 could miss a threshold of 0.7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    numerator: u64,
    denominator: u64,
}

/// Decision after some trials of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Enough passed.
    Passed,
    /// Too many failed for enough to pass.
    Failed,
    /// The missing trials decide.
    Open,
}

/// A text that is not a share between 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a threshold between 0 and 1")]
pub struct ThresholdError(String);

/// Maximum number of decimals; products with 10⁹ trials still fit in 128 bits.
const MAX_DECIMALS: usize = 18;

impl Threshold {
    /// All trials must pass.
    pub const ALL: Threshold = Threshold { numerator: 1, denominator: 1 };

    /// Returns how many of `planned` trials must pass.
    pub fn needed(self, planned: u64) -> u64 {
        let product = u128::from(self.numerator) * u128::from(planned);
        // At most `planned`, because the share is at most 1.
        product.div_ceil(u128::from(self.denominator)) as u64
    }

    /// Returns the decision, which is open while missing trials can change it.
    ///
    /// At least one trial must have been judged, for any threshold.
    pub fn decide(self, passed: u64, failed: u64, planned: u64) -> Decision {
        let needed = self.needed(planned);
        if passed + failed == 0 {
            Decision::Open
        } else if passed >= needed {
            Decision::Passed
        } else if failed > planned - needed {
            Decision::Failed
        } else {
            Decision::Open
        }
    }

    /// Returns the share as a floating-point number, for display and JSON.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ThresholdError(text.to_owned());
        let plain = text.trim().replace('_', "");
        let plain = plain.strip_prefix('+').unwrap_or(&plain);
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty()
            || fraction.len() > MAX_DECIMALS
            || !digits.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Err(error());
        }
        let numerator: u64 = digits.parse().map_err(|_| error())?;
        let denominator = 10_u64.pow(fraction.len() as u32);
        if numerator > denominator {
            return Err(error());
        }
        Ok(Threshold { numerator, denominator })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decide(threshold: &str, passed: u64, failed: u64, planned: u64) -> Decision {
        threshold.parse::<Threshold>().unwrap().decide(passed, failed, planned)
    }

    #[test]
    fn decimal_thresholds_are_exact() {
        assert_eq!(decide("0.6", 3, 2, 5), Decision::Passed);
        assert_eq!(decide("0.7", 7, 3, 10), Decision::Passed);
        assert_eq!(decide("0.7", 6, 4, 10), Decision::Failed);
        assert_eq!(decide("0.29", 29, 71, 100), Decision::Passed);
        assert_eq!(decide("1", 4, 0, 5), Decision::Open);
        assert_eq!(decide("1.0", 4, 1, 5), Decision::Failed);
    }

    #[test]
    fn no_judged_trials_leave_the_decision_open() {
        assert_eq!(decide("0", 0, 0, 5), Decision::Open);
        assert_eq!(decide("0", 0, 1, 5), Decision::Passed);
    }

    #[test]
    fn invalid_shares_are_rejected() {
        for bad in ["", ".", "1.1", "2", "-0.5", "80%", "nan", "1e-1", "0.1234567890123456789"] {
            assert!(Threshold::from_str(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        /// A decision never changes when missing trials arrive.
        #[test]
        fn decisions_are_final(hundredths in 0_u64..=100, passed in 0_u64..20, failed in 0_u64..20, missing in 0_u64..20) {
            let threshold: Threshold = format!("{}.{:02}", hundredths / 100, hundredths % 100).parse().unwrap();
            let planned = passed + failed + missing;
            let before = threshold.decide(passed, failed, planned);
            if before != Decision::Open {
                for extra in 0..=missing {
                    prop_assert_eq!(threshold.decide(passed + extra, failed + missing - extra, planned), before);
                }
            }
            if missing == 0 && planned > 0 {
                let enough = 100 * passed >= hundredths * planned;
                prop_assert_eq!(before, if enough { Decision::Passed } else { Decision::Failed });
            }
        }
    }
}
