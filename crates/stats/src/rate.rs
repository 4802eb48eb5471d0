//! Intervals for the pass rate of one case.
//!
//! Wilson's is the default, Clopper and Pearson's gives a guarantee, and Jeffreys' is between them. The
//! interval of the failure rate is the mirrored one.

use crate::{Z, beta};

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The whole range of a share, for no information.
    pub const UNIT: Interval = Interval { low: 0.0, high: 1.0 };

    /// Whether `value` is in the interval, ends included.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns the interval moved so that it contains 0 exactly if the test of no difference has a `p_value`
    /// above `alpha`. Both come from the same test, so only rounding is corrected.
    pub(crate) fn agreeing(self, p_value: f64, alpha: f64) -> Interval {
        let Interval { low, high } = self;
        match p_value > alpha {
            true => Interval { low: low.min(0.0), high: high.max(0.0) },
            false if low + high > 0.0 => Interval { low: low.max(f64::MIN_POSITIVE), high },
            false => Interval { low, high: high.min(-f64::MIN_POSITIVE) },
        }
    }

    /// Returns the part between 0 and 1.
    pub fn clipped(self) -> Interval {
        Interval { low: self.low.clamp(0.0, 1.0), high: self.high.clamp(0.0, 1.0) }
    }
}

/// Returns Wilson's score interval (1927) for `passed` of `counted`.
///
/// Without counted trials it is `[0, 1]`.
pub fn wilson(passed: u64, counted: u64) -> Interval {
    if counted == 0 {
        return Interval::UNIT;
    }
    let (rate, size) = (passed as f64 / counted as f64, counted as f64);
    let spread = Z * Z / size;
    let centre = (rate + spread / 2.0) / (1.0 + spread);
    let half = Z / (1.0 + spread) * (rate * (1.0 - rate) / size + spread / (4.0 * size)).sqrt();
    Interval {
        // The formula gives these ends exactly, floating point only approximately.
        low: if passed == 0 { 0.0 } else { centre - half },
        high: if passed >= counted { 1.0 } else { centre + half },
    }
}

/// Returns the exact interval of Clopper and Pearson (1934), which covers every true rate in at least 95 %
/// of runs and is wider for it.
///
/// Without counted trials it is `[0, 1]`.
pub fn clopper_pearson(passed: u64, counted: u64) -> Interval {
    clopper_pearson_at(passed as f64, counted.saturating_sub(passed) as f64, 0.05)
}

/// Returns Clopper and Pearson's interval at level `alpha`, for any numbers of passed and failed trials.
pub(crate) fn clopper_pearson_at(passed: f64, failed: f64, alpha: f64) -> Interval {
    let (low, high) = (alpha / 2.0, 1.0 - alpha / 2.0);
    Interval {
        low: if passed <= 0.0 { 0.0 } else { beta::quantile(passed, failed + 1.0, low) },
        high: if failed <= 0.0 { 1.0 } else { beta::quantile(passed + 1.0, failed, high) },
    }
}

/// Returns Jeffreys' interval, with the ends at 0 and 1 of Brown, Cai and DasGupta (2001).
///
/// Without counted trials it is `[0, 1]`.
pub fn jeffreys(passed: u64, counted: u64) -> Interval {
    let (s, f) = (passed as f64 + 0.5, counted.saturating_sub(passed) as f64 + 0.5);
    Interval {
        low: if passed == 0 { 0.0 } else { beta::quantile(s, f, 0.025) },
        high: if passed >= counted { 1.0 } else { beta::quantile(s, f, 0.975) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;

    type Method = fn(u64, u64) -> Interval;

    /// Reference values: statsmodels 0.15, `proportion_confint` with `wilson`, `beta` and
    /// `jeffreys`.
    #[test]
    fn intervals_agree_with_statsmodels() {
        let table = [
            (0, 1, [(0.0, 0.793451), (0.0, 0.975), (0.0, 0.853254)]),
            (0, 3, [(0.0, 0.561497), (0.0, 0.707598), (0.0, 0.535583)]),
            (2, 3, [(0.207660, 0.938508), (0.094299, 0.991596), (0.176736, 0.961252)]),
            (3, 5, [(0.230724, 0.882379), (0.146633, 0.947255), (0.209417, 0.905610)]),
            (4, 5, [(0.375535, 0.963776), (0.283582, 0.994949), (0.371374, 0.977487)]),
            (8, 10, [(0.490162, 0.943318), (0.443905, 0.974789), (0.497226, 0.955941)]),
            (10, 10, [(0.722467, 1.0), (0.691503, 1.0), (0.782804, 1.0)]),
            (1, 20, [(0.008881, 0.236131), (0.001265, 0.248733), (0.005449, 0.210819)]),
            (16, 20, [(0.583983, 0.919342), (0.563386, 0.942666), (0.591774, 0.928480)]),
            (40, 50, [(0.669629, 0.887562), (0.662817, 0.899698), (0.674173, 0.892266)]),
            (70, 100, [(0.604151, 0.781051), (0.600185, 0.787594), (0.605453, 0.783159)]),
            (999, 1000, [(0.994357, 0.999823), (0.994441, 0.999975), (0.995336, 0.999892)]),
        ];
        let methods: [Method; 3] = [wilson, clopper_pearson, jeffreys];
        for (passed, counted, expected) in table {
            for (method, (low, high)) in methods.iter().zip(expected) {
                let interval = method(passed, counted);
                near(interval.low, low);
                near(interval.high, high);
            }
        }
    }

    #[test]
    fn no_counted_trials_give_the_unit_interval() {
        for method in [wilson, clopper_pearson, jeffreys] {
            assert_eq!(method(0, 0), Interval::UNIT);
        }
    }

    #[test]
    fn ends_are_exact() {
        for method in [wilson, clopper_pearson, jeffreys] {
            assert_eq!(method(0, 7).low, 0.0);
            assert_eq!(method(7, 7).high, 1.0);
        }
    }

    proptest! {
        #[test]
        fn intervals_contain_the_rate_and_are_symmetric(counted in 1_u64..3000, share in 0.0_f64..=1.0) {
            let passed = (share * counted as f64) as u64;
            let rate = passed as f64 / counted as f64;
            for method in [wilson, clopper_pearson, jeffreys] {
                let interval = method(passed, counted);
                prop_assert!(interval.contains(rate), "{interval:?}");
                prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
                let failures = method(counted - passed, counted);
                prop_assert!((failures.low - (1.0 - interval.high)).abs() < 1e-9);
                prop_assert!((failures.high - (1.0 - interval.low)).abs() < 1e-9);
            }
        }
    }
}
