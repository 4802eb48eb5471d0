//! A target over all its cases.

use crate::Z;
use crate::rate::{Interval, wilson, wilson_at};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// How the judged trials of one case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseRate {
    /// Trials that passed.
    pub passed: u64,
    /// Trials that were judged.
    pub counted: u64,
}

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean over cases.
    pub mean: f64,
    /// Its interval.
    pub interval: Interval,
}

/// Mean of the cases' pass rates; each case weighs the same. Cases with nothing judged are left
/// out; with none left there is no estimate.
///
/// The standard error clusters by case (Liang & Zeger 1986), so more trials do not pass for more
/// cases. The interval is Wilson's at an effective sample size (Korn & Graubard 1998; Dean & Pagano
/// 2015), which holds near 0 and 1 where a t interval does not.
pub fn mean_pass_rate(cases: impl Iterator<Item = CaseRate> + Clone) -> Option<Estimate> {
    let judged = cases.filter(|case| case.counted > 0);
    let (mut number, mut trials, mut sum) = (0_u64, 0_u64, 0.0);
    for case in judged.clone() {
        number += 1;
        trials += case.counted;
        sum += rate(case);
    }
    if number <= 1 {
        let only = judged.last()?;
        return Some(Estimate { mean: rate(only), interval: wilson(only.passed, only.counted) });
    }
    let count = number as f64;
    let mean = sum / count;
    let squares: f64 = judged.map(|case| (rate(case) - mean).powi(2)).sum();
    let error = (squares / (count * (count - 1.0))).sqrt();
    let one_trial_each = trials == number;
    let size = if one_trial_each || error == 0.0 {
        count
    } else {
        let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(0.975);
        (mean * (1.0 - mean) / (error * error)).min(trials as f64) * (Z / t).powi(2)
    };
    Some(Estimate { mean, interval: wilson_at(mean, size) })
}

fn rate(case: CaseRate) -> f64 {
    case.passed as f64 / case.counted as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(rates: &[(u64, u64)]) -> Vec<CaseRate> {
        rates.iter().map(|&(passed, counted)| CaseRate { passed, counted }).collect()
    }

    fn of_four(passed: [u64; 8]) -> Vec<CaseRate> {
        cases(&passed.map(|passed| (passed, 4)))
    }

    /// Reference values computed with SciPy 1.17 from the formulas named above.
    #[test]
    fn agrees_with_reference_values() {
        let uneven = cases(&[(4, 4), (3, 4), (1, 2), (3, 3), (0, 4), (2, 3)]);
        let table = [
            (of_four([4, 4, 3, 4, 2, 4, 1, 3]), 0.781250, 0.496618, 0.928206),
            (of_four([4, 3, 3, 2, 2, 3, 0, 3]), 0.625, 0.375169, 0.822263),
            (uneven, 0.652778, 0.281708, 0.900119),
            (of_four([4; 8]), 1.0, 0.675592, 1.0),
        ];
        for (cases, mean, low, high) in table {
            let estimate = mean_pass_rate(cases.into_iter()).unwrap();
            assert!((estimate.mean - mean).abs() < 1e-6, "{estimate:?}");
            assert!((estimate.interval.low - low).abs() < 1e-6, "{estimate:?}");
            assert!((estimate.interval.high - high).abs() < 1e-6, "{estimate:?}");
        }
    }

    #[test]
    fn one_case_has_its_own_interval_and_no_case_has_none() {
        assert_eq!(
            mean_pass_rate(cases(&[(3, 5), (0, 0)]).into_iter()).unwrap().interval,
            wilson(3, 5)
        );
        assert_eq!(mean_pass_rate(cases(&[(0, 0)]).into_iter()), None);
    }
}
