//! Probabilities of success in k trials.
//!
//! pass@k is the probability that at least one of k trials passes, pass^k that all do. Both require trials
//! that ran regardless of earlier results: cases that stopped early have neither, and the caller leaves
//! them out. The value of a suite is the mean over cases, with [`mean_score`](crate::mean_score)'s interval.

use crate::rate::{Interval, clopper_pearson};

/// An estimated probability with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbabilityEstimate {
    /// The unbiased estimate.
    pub value: f64,
    /// Its interval, which is wide for few trials: never show a `value` of 1 without it.
    pub interval: Interval,
}

/// Estimates the probability that at least one of `k` trials passes (Chen et al. 2021).
///
/// Absent if `k` is 0 or more than were counted.
pub fn pass_at_k(passed: u64, counted: u64, k: u64) -> Option<ProbabilityEstimate> {
    // The complement: all of `k` trials fail.
    let none = all_of(counted.checked_sub(passed)?, counted, k)?;
    let rate = clopper_pearson(passed, counted);
    let map = |p: f64| 1.0 - (1.0 - p).powf(k as f64);
    Some(ProbabilityEstimate {
        value: 1.0 - none,
        interval: Interval { low: map(rate.low), high: map(rate.high) },
    })
}

/// Estimates the probability that all of `k` trials pass (Yao et al. 2024).
///
/// Absent if `k` is 0 or more than were counted.
pub fn pass_hat_k(passed: u64, counted: u64, k: u64) -> Option<ProbabilityEstimate> {
    let value = all_of(passed, counted, k)?;
    let rate = clopper_pearson(passed, counted);
    let map = |p: f64| p.powf(k as f64);
    Some(ProbabilityEstimate {
        value,
        interval: Interval { low: map(rate.low), high: map(rate.high) },
    })
}

/// Returns C(`have`, `k`) / C(`of`, `k`) without large numbers: the probability that `k` items drawn from
/// `of` without replacement are all among `have`.
fn all_of(have: u64, of: u64, k: u64) -> Option<f64> {
    if k == 0 || k > of || have > of {
        return None;
    }
    if have < k {
        return Some(0.0);
    }
    // Both products are equal; the shorter one has at most half as many factors as trials.
    let missing = of - have;
    Some(if k <= missing {
        (0..k).map(|j| (have - j) as f64 / (of - j) as f64).product()
    } else {
        (have + 1..=of).map(|i| 1.0 - k as f64 / i as f64).product()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{near, six_digits};
    use proptest::prelude::*;

    /// Reference values: exact rationals of the binomial definition.
    #[test]
    fn agree_with_binomials() {
        let table = [
            (5, 3, 1, 0.6, 0.6),
            (5, 3, 2, 0.9, 0.3),
            (5, 3, 3, 1.0, 0.1),
            (5, 4, 3, 1.0, 0.4),
            (10, 8, 3, 1.0, 0.466667),
            (10, 1, 5, 0.5, 0.0),
            (20, 16, 5, 1.0, 0.281734),
            (50, 40, 10, 1.0, 0.0825192),
            (200, 3, 100, 0.876884, 0.0),
            (1000, 500, 10, 0.999067, 0.000933188),
        ];
        for (counted, passed, k, any, all) in table {
            let estimate = pass_at_k(passed, counted, k).unwrap();
            six_digits(estimate.value, any);
            assert!(counted - passed >= k || estimate.value == 1.0);
            let estimate = pass_hat_k(passed, counted, k).unwrap();
            if all == 0.0 {
                assert_eq!(estimate.value, 0.0);
            } else {
                six_digits(estimate.value, all);
            }
        }
    }

    /// Reference values: SciPy 1.17, `beta.ppf` through the maps.
    #[test]
    fn intervals_agree_with_scipy() {
        let table = [
            (5, 4, 3, (0.632295, 1.0), (0.022805, 0.984924)),
            (10, 8, 3, (0.828032, 0.999984), (0.087472, 0.926259)),
        ];
        for (counted, passed, k, any, all) in table {
            let interval = pass_at_k(passed, counted, k).unwrap().interval;
            near(interval.low, any.0);
            near(interval.high, any.1);
            let interval = pass_hat_k(passed, counted, k).unwrap().interval;
            near(interval.low, all.0);
            near(interval.high, all.1);
        }
    }

    #[test]
    fn absent_without_enough_trials() {
        assert_eq!(pass_at_k(3, 5, 6), None);
        assert_eq!(pass_hat_k(3, 5, 6), None);
        assert_eq!(pass_at_k(0, 0, 1), None);
        assert_eq!(pass_at_k(1, 5, 0), None);
        assert_eq!(pass_at_k(6, 5, 1), None);
    }

    proptest! {
        /// The intervals are for the true probability. They always contain its plug-in estimate; the
        /// unbiased one can be 0 while the interval starts a little above.
        #[test]
        fn intervals_contain_the_plug_in_estimate(counted in 1_u64..60, passed in 0_u64..60, k in 1_u64..60) {
            prop_assume!(passed <= counted && k <= counted);
            let rate = passed as f64 / counted as f64;
            let any = pass_at_k(passed, counted, k).unwrap();
            prop_assert!(any.interval.contains(1.0 - (1.0 - rate).powf(k as f64)), "{any:?}");
            let all = pass_hat_k(passed, counted, k).unwrap();
            prop_assert!(all.interval.contains(rate.powf(k as f64)), "{all:?}");
        }

        /// Both products give the same number.
        #[test]
        fn any_and_all_are_complementary(counted in 1_u64..200, passed in 0_u64..200, k in 1_u64..200) {
            prop_assume!(passed <= counted && k <= counted);
            let any = pass_at_k(passed, counted, k).unwrap().value;
            let fail_all = pass_hat_k(counted - passed, counted, k).unwrap().value;
            prop_assert!((any + fail_all - 1.0).abs() < 1e-12);
            if passed > 0 && k > 1 {
                prop_assert!(any >= pass_at_k(passed, counted, k - 1).unwrap().value - 1e-12);
            }
        }
    }
}
