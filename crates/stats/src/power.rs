//! Power of comparisons, and the number of cases they need.
//!
//! All functions use a two-sided level of 0.05; the required power is 0.8.

use crate::mean::CaseRate;
use crate::{Z, student};

const POWER: f64 = 0.8;

/// The 0.8 quantile of the standard normal distribution.
const Z_POWER: f64 = 0.841_621_233_572_914_3;

/// Upper limit of the computed number of cases.
const MAX_CASES: u64 = 1_000_000_000;

/// Returns the power of a paired t test over `cases` cases for a true difference of `difference` between
/// targets whose differences have the standard deviation `deviation`, by the noncentral t (Cohen 1988).
/// Absent with fewer than two cases.
pub fn power(difference: f64, deviation: f64, cases: u64) -> Option<f64> {
    if cases < 2 {
        return None;
    }
    let shift = if difference == 0.0 { 0.0 } else { difference.abs() / deviation };
    Some(power_at(shift, cases))
}

/// Returns the smallest difference that a paired t test over `cases` cases detects with power 0.8; about
/// 2.8 standard errors. Absent with fewer than two cases.
pub fn detectable_difference(deviation: f64, cases: u64) -> Option<f64> {
    if cases < 2 || !deviation.is_finite() || deviation < 0.0 {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while power_at(high, cases) < POWER {
        high *= 2.0;
        if high > 1e9 {
            return None;
        }
    }
    while high - low > 1e-10 * high {
        let middle = 0.5 * (low + high);
        if power_at(middle, cases) < POWER { low = middle } else { high = middle }
    }
    Some(high * deviation)
}

/// Returns the number of cases that a paired t test needs to detect `difference` with power 0.8. Absent if
/// the difference is 0 or more than 10⁹ cases are needed.
pub fn cases_needed(difference: f64, deviation: f64) -> Option<u64> {
    let shift = difference.abs() / deviation;
    // Both NaN and 0 are excluded.
    if !(shift > 0.0 && deviation >= 0.0) {
        return None;
    }
    first(|cases| power_at(shift, cases) >= POWER)
}

/// Returns the number of cases with one verdict each that are needed to detect `difference` in pass rates
/// if the targets differ on a share `discordant` of the cases (Connor 1987).
///
/// Absent if the difference is 0 or exceeds that share, which is impossible.
pub fn binary_cases_needed(difference: f64, discordant: f64) -> Option<u64> {
    let square = difference * difference;
    if !(square > 0.0 && difference.abs() <= discordant && discordant <= 1.0) {
        return None;
    }
    let root = Z * discordant.sqrt() + Z_POWER * (discordant - square).sqrt();
    let cases = (root * root / square).ceil();
    (cases <= MAX_CASES as f64).then_some(cases as u64)
}

fn power_at(shift: f64, cases: u64) -> f64 {
    let count = cases as f64;
    let critical = student::quantile(0.975, count - 1.0);
    student::noncentral_outside(critical, count - 1.0, shift * count.sqrt())
}

/// Returns the smallest number of cases, from 2, that is sufficient.
fn first(is_sufficient: impl Fn(u64) -> bool) -> Option<u64> {
    let mut high = 2;
    while !is_sufficient(high) {
        high *= 2;
        if high > MAX_CASES {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_sufficient(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Sources of the variance of differences between two targets (Miller 2024).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceSplit {
    /// Variance of the true differences between cases, which more trials cannot reduce.
    pub between: f64,
    /// Variance of one trial of the first target, averaged over cases.
    pub first: f64,
    /// Variance of one trial of the second target, averaged over cases.
    pub second: f64,
}

impl VarianceSplit {
    /// Splits the observed variance. Cases with fewer than two judged trials on either side are left out;
    /// absent with fewer than two remaining cases.
    pub fn new(pairs: impl IntoIterator<Item = (CaseRate, CaseRate)>) -> Option<VarianceSplit> {
        let (mut differences, mut noise) = (Vec::new(), 0.0);
        let (mut first, mut second) = (0.0, 0.0);
        for (a, b) in pairs {
            let (Some(of_a), Some(of_b)) = (trial_variance(a), trial_variance(b)) else {
                continue;
            };
            differences.push(b.rate()? - a.rate()?);
            first += of_a;
            second += of_b;
            noise += of_a / a.counted as f64 + of_b / b.counted as f64;
        }
        let count = differences.len() as f64;
        if count < 2.0 {
            return None;
        }
        let mean = differences.iter().sum::<f64>() / count;
        let squares: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
        let between = (squares / (count - 1.0) - noise / count).max(0.0);
        Some(VarianceSplit { between, first: first / count, second: second / count })
    }

    /// Returns the expected standard deviation of the differences with `trials` trials per case and target.
    pub fn deviation(&self, trials: u64) -> f64 {
        (self.between + (self.first + self.second) / trials.max(1) as f64).sqrt()
    }
}

/// Returns the unbiased variance of one trial; absent with fewer than two trials.
fn trial_variance(case: CaseRate) -> Option<f64> {
    let rate = case.rate()?;
    let count = case.counted as f64;
    (case.counted > 1).then(|| rate * (1.0 - rate) * count / (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;

    /// Reference values: statsmodels 0.15, `TTestPower.solve_power`, whose solver stops within 1e-6:
    /// SciPy's noncentral t solved to the end gives .0565825 for .056582 and .2988004 for .298801.
    #[test]
    fn agrees_with_statsmodels() {
        let table = [
            (0.2, [787, 128, 34, 10], [0.199200, 0.132088, 0.080837, 0.056582, 0.025106]),
            (0.3, [1768, 285, 73, 20], [0.298801, 0.198132, 0.121255, 0.084874, 0.037660]),
        ];
        for (deviation, cases, detectable) in table {
            for (difference, cases) in [0.02, 0.05, 0.1, 0.2].into_iter().zip(cases) {
                assert_eq!(cases_needed(difference, deviation), Some(cases));
                assert!(power(difference, deviation, cases).unwrap() >= 0.8);
                assert!(power(difference, deviation, cases - 1).unwrap() < 0.8);
            }
            for (cases, difference) in [10, 20, 50, 100, 500].into_iter().zip(detectable) {
                let actual = detectable_difference(deviation, cases).unwrap();
                assert!((actual - difference).abs() < 1e-6, "{actual}");
            }
        }
        near(detectable_difference(0.2, 100).unwrap(), 0.0565825);
        near(detectable_difference(0.3, 10).unwrap(), 0.2988004);
        // Normal theory for many cases: 2.801585·sd/√C.
        let many = detectable_difference(0.2, 1_000_000).unwrap();
        assert!((many / (2.801585 * 0.2 / 1000.0) - 1.0).abs() < 1e-5, "{many}");
    }

    /// Reference values: the formula in SciPy 1.17.
    #[test]
    fn binary_agrees_with_connor() {
        let table = [(0.1, 0.05, 312), (0.2, 0.05, 626), (0.2, 0.1, 155), (0.4, 0.2, 77)];
        for (discordant, difference, cases) in table {
            assert_eq!(binary_cases_needed(difference, discordant), Some(cases));
        }
    }

    #[test]
    fn impossible_arguments_have_no_result() {
        assert_eq!(cases_needed(0.0, 0.2), None);
        assert_eq!(cases_needed(f64::NAN, 0.2), None);
        assert_eq!(cases_needed(0.0, 0.0), None);
        assert_eq!(cases_needed(1e-9, 1.0), None);
        assert_eq!(cases_needed(0.1, 0.0), Some(2));
        assert_eq!(detectable_difference(0.2, 1), None);
        assert_eq!(power(0.1, 0.2, 1), None);
        assert_eq!(binary_cases_needed(0.3, 0.2), None);
        assert_eq!(binary_cases_needed(0.0, 0.2), None);
        assert_eq!(binary_cases_needed(1e-9, 1.0), None);
    }

    fn of(passed: u64, counted: u64) -> CaseRate {
        CaseRate { passed, counted }
    }

    #[test]
    fn more_trials_do_not_reduce_variance_between_cases() {
        // Deterministic cases: all variance is between cases.
        let split = VarianceSplit::new([(of(4, 4), of(0, 4)), (of(0, 4), of(0, 4))]).unwrap();
        assert_eq!(split, VarianceSplit { between: 0.5, first: 0.0, second: 0.0 });
        assert_eq!(split.deviation(1), split.deviation(1000));
        // Fair coins: all variance is noise. Variance of a trial: 1/4 · 4/3.
        let split = VarianceSplit::new([(of(2, 4), of(2, 4)), (of(2, 4), of(2, 4))]).unwrap();
        near(split.first, 1.0 / 3.0);
        assert_eq!(split.between, 0.0);
        near(split.deviation(1), (2.0_f64 / 3.0).sqrt());
        near(split.deviation(100), (2.0_f64 / 300.0).sqrt());
        assert_eq!(VarianceSplit::new([(of(1, 1), of(1, 1)), (of(2, 4), of(2, 4))]), None);
    }

    proptest! {
        /// For the actual number of trials the split reproduces the observed deviation, unless noise alone
        /// explains more.
        #[test]
        fn split_reproduces_the_observed_deviation(passed in prop::collection::vec((0_u64..=4, 0_u64..=4), 2..20)) {
            let pairs: Vec<_> = passed.iter().map(|&(a, b)| (of(a, 4), of(b, 4))).collect();
            let observed = crate::PairedDifferences::new(&crate::differences(pairs.iter().copied())).unwrap();
            let split = VarianceSplit::new(pairs).unwrap();
            prop_assert!(split.deviation(4) >= observed.deviation() - 1e-12);
            if split.between > 0.0 {
                prop_assert!((split.deviation(4) - observed.deviation()).abs() < 1e-9);
            }
        }
    }
}
