//! Comparison of two targets with one verdict per case.
//!
//! `gained` counts the cases that only the second target passes, `lost` those that only the first
//! passes; the other cases carry no information about a difference.

use crate::rate::Interval;
use crate::{Z, beta};

/// Returns the p-value of McNemar's test (1947) in its exact, binomial form; 1 if nothing changed.
pub fn mcnemar(gained: u64, lost: u64) -> f64 {
    if gained == lost {
        return 1.0;
    }
    let (fewer, more) = (gained.min(lost) as f64, gained.max(lost) as f64);
    // P(Bin(n, 1/2) <= fewer).
    (2.0 * beta::cumulative(more, fewer + 1.0, 0.5)).min(1.0)
}

/// Returns the interval of Bonett and Price (2012) for the difference of two pass rates over the same
/// `cases`; positive when the second target is better.
///
/// If it disagrees with the test, the test decides.
pub fn bonett_price(gained: u64, lost: u64, cases: u64) -> Interval {
    let size = cases as f64 + 2.0;
    let (up, down) = ((gained as f64 + 1.0) / size, (lost as f64 + 1.0) / size);
    let difference = up - down;
    let half = Z * ((up + down - difference * difference) / size).sqrt();
    Interval { low: difference - half, high: difference + half }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{near, six_digits};
    use proptest::prelude::*;

    /// Reference values: statsmodels 0.15, `mcnemar(exact=True)`.
    #[test]
    fn mcnemar_agrees_with_statsmodels() {
        let table = [
            (1, 0, 1.0),
            (5, 0, 0.0625),
            (6, 0, 0.03125),
            (8, 2, 0.109375),
            (10, 2, 0.0385742),
            (25, 12, 0.0470310),
        ];
        for (gained, lost, p) in table {
            six_digits(mcnemar(gained, lost), p);
            six_digits(mcnemar(lost, gained), p);
        }
        assert_eq!(mcnemar(0, 0), 1.0);
    }

    /// Reference values: the formula in SciPy 1.17.
    #[test]
    fn bonett_price_agrees_with_scipy() {
        for (cases, gained, lost, low, high) in
            [(100, 12, 5, -0.014065, 0.151320), (200, 25, 12, 0.004416, 0.124297)]
        {
            let interval = bonett_price(gained, lost, cases);
            near(interval.low, low);
            near(interval.high, high);
        }
    }

    proptest! {
        #[test]
        fn p_values_are_probabilities_and_intervals_are_symmetric(gained in 0_u64..500, lost in 0_u64..500, rest in 0_u64..500) {
            let p = mcnemar(gained, lost);
            prop_assert!(p > 0.0 && p <= 1.0);
            let one = bonett_price(gained, lost, gained + lost + rest);
            let other = bonett_price(lost, gained, gained + lost + rest);
            prop_assert!((one.low + other.high).abs() < 1e-12);
        }
    }
}
