//! A target over all its cases.
//!
//! Cases weigh the same and are the unit of chance: more trials do not pass for more cases.

use crate::rate::{Interval, wilson, wilson_at};
use crate::{Z, student};

/// How the judged trials of one case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseRate {
    /// Trials that passed.
    pub passed: u64,
    /// Trials that were judged.
    pub counted: u64,
}

impl CaseRate {
    /// The share that passed; absent with nothing judged.
    pub fn rate(self) -> Option<f64> {
        (self.counted > 0).then(|| self.passed as f64 / self.counted as f64)
    }
}

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean over cases.
    pub mean: f64,
    /// Its interval.
    pub interval: Interval,
    /// Its standard error, clustered by case; absent with one case.
    pub error: Option<f64>,
    /// How many cases it is over.
    pub cases: u64,
    /// How many independent trials would know as much.
    pub effective_size: f64,
}

/// Below this many cases an interval deserves a warning.
const ENOUGH_CASES: u64 = 10;

impl Estimate {
    /// Whether the interval rests on so few cases that a reader should be told.
    pub fn few_cases(&self) -> bool {
        (2..ENOUGH_CASES).contains(&self.cases)
    }
}

/// Mean of the cases' pass rates; each case weighs the same. Cases with nothing judged are left
/// out; with none left there is no estimate.
///
/// The standard error clusters by case (Liang & Zeger 1986), so more trials do not pass for more
/// cases. The interval is Wilson's at an effective sample size (Korn & Graubard 1998; Dean & Pagano
/// 2015), which holds near 0 and 1 where a t interval does not.
pub fn mean_pass_rate(cases: impl Iterator<Item = CaseRate> + Clone) -> Option<Estimate> {
    let judged = cases.filter(|case| case.counted > 0);
    let trials: u64 = judged.clone().map(|case| case.counted).sum();
    let (mean, error, number) = moments(judged.clone().filter_map(CaseRate::rate))?;
    let Some(error) = error else {
        let only = judged.last()?;
        return Some(Estimate {
            mean,
            interval: wilson(only.passed, only.counted),
            error: None,
            cases: 1,
            effective_size: only.counted as f64,
        });
    };
    let count = number as f64;
    let one_trial_each = trials == number;
    let effective_size = if one_trial_each || error == 0.0 {
        count
    } else {
        let t = student::quantile(0.975, count - 1.0);
        (mean * (1.0 - mean) / (error * error)).min(trials as f64) * (Z / t).powi(2)
    };
    let interval = wilson_at(mean, effective_size);
    Some(Estimate { mean, interval, error: Some(error), cases: number, effective_size })
}

/// Mean of one score per case with Student's t interval (1908) and the same clustered error.
///
/// A score may be any real number, so the interval is not clipped. Absent with fewer than two
/// scores, where nothing is known of their spread: a suite of one case has only that case's
/// interval, over its trials.
pub fn mean_score(scores: &[f64]) -> Option<Estimate> {
    let (mean, error, cases) = moments(scores.iter().copied())?;
    let error = error?;
    let half = student::quantile(0.975, (cases - 1) as f64) * error;
    Some(Estimate {
        mean,
        interval: Interval { low: mean - half, high: mean + half },
        error: Some(error),
        cases,
        effective_size: cases as f64,
    })
}

/// The standard error that would hold if every trial were a case of its own.
///
/// Only to be shown beside the honest one: their ratio says how much alike the trials of a case
/// are. Absent with fewer than two trials.
pub fn naive_error(cases: impl Iterator<Item = CaseRate>) -> Option<f64> {
    let (passed, counted) = cases
        .fold((0, 0), |(passed, counted), case| (passed + case.passed, counted + case.counted));
    let rate = CaseRate { passed, counted }.rate()?;
    (counted > 1).then(|| (rate * (1.0 - rate) / (counted - 1) as f64).sqrt())
}

/// Mean, its standard error (absent for one value) and the number of values.
pub(crate) fn moments(
    values: impl Iterator<Item = f64> + Clone,
) -> Option<(f64, Option<f64>, u64)> {
    let (number, sum) = values.clone().fold((0_u64, 0.0), |(n, sum), value| (n + 1, sum + value));
    if number == 0 {
        return None;
    }
    let count = number as f64;
    let mean = sum / count;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    let error = (number > 1).then(|| (squares / (count * (count - 1.0))).sqrt());
    Some((mean, error, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn cases(rates: &[(u64, u64)]) -> Vec<CaseRate> {
        rates.iter().map(|&(passed, counted)| CaseRate { passed, counted }).collect()
    }

    fn of_four(passed: [u64; 8]) -> Vec<CaseRate> {
        cases(&passed.map(|passed| (passed, 4)))
    }

    fn scores(cases: &[CaseRate]) -> Vec<f64> {
        cases.iter().filter_map(|case| case.rate()).collect()
    }

    fn table() -> [(Vec<CaseRate>, [f64; 7]); 3] {
        let uneven = cases(&[(4, 4), (3, 4), (1, 2), (3, 3), (0, 4), (2, 3)]);
        [
            (
                of_four([4, 4, 3, 4, 2, 4, 1, 3]),
                [0.781250, 0.099525, 0.545912, 1.016588, 11.853583, 0.496618, 0.928206],
            ),
            (
                of_four([4, 3, 3, 2, 2, 3, 0, 3]),
                [0.625, 0.105644, 0.375191, 0.874809, 14.427504, 0.375169, 0.822263],
            ),
            (uneven, [0.652778, 0.152778, 0.260050, 1.045506, 5.645284, 0.281708, 0.900119]),
        ]
    }

    /// Reference values computed with SciPy 1.17 from the formulas named above.
    #[test]
    fn pass_rates_agree_with_reference_values() {
        for (cases, [mean, error, _, _, size, low, high]) in table() {
            let estimate = mean_pass_rate(cases.into_iter()).unwrap();
            near(estimate.mean, mean);
            near(estimate.error.unwrap(), error);
            near(estimate.effective_size, size);
            near(estimate.interval.low, low);
            near(estimate.interval.high, high);
        }
        let all = mean_pass_rate(of_four([4; 8]).into_iter()).unwrap();
        near(all.interval.low, 0.675592);
        assert_eq!(all.interval.high, 1.0);
    }

    #[test]
    fn scores_agree_with_reference_values() {
        for (cases, [mean, error, low, high, ..]) in table() {
            let estimate = mean_score(&scores(&cases)).unwrap();
            near(estimate.mean, mean);
            near(estimate.error.unwrap(), error);
            near(estimate.interval.low, low);
            near(estimate.interval.high, high);
        }
    }

    #[test]
    fn naive_errors_agree_with_reference_values() {
        let [(a, _), (b, _), _] = table();
        near(naive_error(a.into_iter()).unwrap(), 0.074249);
        near(naive_error(b.into_iter()).unwrap(), 0.086951);
        assert_eq!(naive_error(cases(&[(1, 1)]).into_iter()), None);
    }

    #[test]
    fn one_case_has_its_own_interval_and_no_case_has_none() {
        let one = mean_pass_rate(cases(&[(3, 5), (0, 0)]).into_iter()).unwrap();
        assert_eq!(one.interval, wilson(3, 5));
        assert_eq!((one.error, one.cases), (None, 1));
        assert_eq!(mean_pass_rate(cases(&[(0, 0)]).into_iter()), None);
        assert_eq!(mean_score(&[0.5]), None);
        assert_eq!(mean_score(&[]), None);
    }

    /// One trial each: cases are trials, and the interval is Wilson's own.
    #[test]
    fn one_trial_per_case_is_wilson() {
        let single: Vec<CaseRate> =
            cases(&[(1, 1); 16]).into_iter().chain(cases(&[(0, 1); 4])).collect();
        let estimate = mean_pass_rate(single.into_iter()).unwrap();
        assert_eq!(estimate.effective_size, 20.0);
        assert_eq!(estimate.interval, wilson(16, 20));
    }

    #[test]
    fn few_cases_are_two_to_nine() {
        let few = |number| {
            mean_pass_rate(vec![cases(&[(1, 2)])[0]; number].into_iter()).unwrap().few_cases()
        };
        assert_eq!([1, 2, 9, 10].map(few), [false, true, true, false]);
    }

    /// Coverage near 1, where a t interval misses. 4,000 runs per row gave .985, .928 and .950
    /// (t: .784, .644, .931); a few hundred are enough to tell the two apart.
    #[test]
    fn covers_rates_near_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for (number, trials, t_low, low) in [(10, 3, 0.85, 0.96), (20, 1, 0.72, 0.89)] {
            let (mut wilson, mut t) = (0, 0);
            for _ in 0..600 {
                let cases: Vec<CaseRate> = (0..number)
                    .map(|_| {
                        // Beta(19, 1) by its inverse.
                        let rate = rng.random::<f64>().powf(1.0 / 19.0);
                        let passed =
                            (0..trials).filter(|_| rng.random::<f64>() < rate).count() as u64;
                        CaseRate { passed, counted: trials }
                    })
                    .collect();
                let by_t = mean_score(&scores(&cases)).unwrap();
                let by_wilson = mean_pass_rate(cases.into_iter()).unwrap();
                t += u32::from(by_t.interval.contains(0.95));
                wilson += u32::from(by_wilson.interval.contains(0.95));
            }
            assert!(f64::from(t) / 600.0 < t_low, "{t}");
            assert!(f64::from(wilson) / 600.0 > low, "{wilson}");
        }
    }

    proptest! {
        #[test]
        fn intervals_contain_the_mean(rates in prop::collection::vec((0_u64..6, 0_u64..6), 2..40)) {
            let cases: Vec<CaseRate> = rates
                .into_iter()
                .map(|(passed, failed)| CaseRate { passed, counted: passed + failed })
                .collect();
            if let Some(estimate) = mean_pass_rate(cases.iter().copied()) {
                prop_assert!(estimate.interval.contains(estimate.mean), "{estimate:?}");
                prop_assert!(estimate.interval.low >= 0.0 && estimate.interval.high <= 1.0);
            }
            if let Some(estimate) = mean_score(&scores(&cases)) {
                prop_assert!(estimate.interval.contains(estimate.mean), "{estimate:?}");
            }
        }
    }
}
