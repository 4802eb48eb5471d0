//! Means of a target over its cases.
//!
//! Cases have equal weight and are the unit of sampling: more trials do not count as more cases.

use crate::rate::{Interval, clopper_pearson_at, wilson};
use crate::{Z, betting, student};

/// Judged trials of one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseRate {
    /// Trials that passed.
    pub passed: u64,
    /// Trials that were judged.
    pub counted: u64,
}

impl CaseRate {
    /// Returns the share that passed; absent without judged trials.
    pub fn rate(self) -> Option<f64> {
        (self.counted > 0).then(|| self.passed as f64 / self.counted as f64)
    }
}

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanEstimate {
    /// The mean over cases.
    pub mean: f64,
    /// Its interval.
    pub interval: Interval,
    /// Its standard error, clustered by case; absent with one case.
    pub error: Option<f64>,
    /// Number of cases.
    pub cases: u64,
    /// Number of independent trials with the same information.
    pub effective_size: f64,
}

/// Minimum number of cases for an interval without a warning.
const MIN_CASES: u64 = 10;

impl MeanEstimate {
    /// Whether there are so few cases that the interval needs a warning.
    pub fn has_few_cases(&self) -> bool {
        (2..MIN_CASES).contains(&self.cases)
    }
}

/// Returns the mean of the pass rates of the cases, with equal weights. Cases without judged trials are
/// left out; absent if none remain.
///
/// The standard error clusters by case (Liang & Zeger 1986), so more trials do not count as more cases. The
/// interval is Clopper and Pearson's at an effective sample size (Korn & Graubard 1998; Dean & Pagano 2015),
/// which is valid near 0 and 1, unlike a t interval. Wilson's at that size covers only 90 % of rates near 1
/// with 10 to 50 cases.
pub fn mean_pass_rate(cases: impl Iterator<Item = CaseRate> + Clone) -> Option<MeanEstimate> {
    let judged = cases.filter(|case| case.counted > 0);
    let trials: u64 = judged.clone().map(|case| case.counted).sum();
    let (mean, error, number) = moments(judged.clone().filter_map(CaseRate::rate))?;
    let Some(error) = error else {
        let only = judged.last()?;
        return Some(MeanEstimate {
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
    let (passed, failed) = (mean * effective_size, (1.0 - mean) * effective_size);
    let interval = clopper_pearson_at(passed, failed, 0.05);
    Some(MeanEstimate { mean, interval, error: Some(error), cases: number, effective_size })
}

/// Returns the mean of one score between 0 and 1 per case, with the betting interval of bounded values
/// (Waudby-Smith & Ramdas 2024), which stays between 0 and 1 and never has a width of 0. Absent without
/// scores.
pub fn mean_score(scores: &[f64]) -> Option<MeanEstimate> {
    let (mean, error, cases) = moments(scores.iter().copied())?;
    let found = betting::interval(scores);
    Some(MeanEstimate {
        mean,
        // The ends are exact to nine digits only.
        interval: Interval { low: found.low.min(mean), high: found.high.max(mean) },
        error,
        cases,
        effective_size: cases as f64,
    })
}

/// Returns the mean of one value per case with Student's t interval (1908) and the same clustered error.
///
/// For values without bounds, such as logarithms. Absent with fewer than two values, whose spread is
/// unknown.
pub fn mean_value(values: &[f64]) -> Option<MeanEstimate> {
    let (mean, error, cases) = moments(values.iter().copied())?;
    let error = error?;
    let half = student::quantile(0.975, (cases - 1) as f64) * error;
    Some(MeanEstimate {
        mean,
        interval: Interval { low: mean - half, high: mean + half },
        error: Some(error),
        cases,
        effective_size: cases as f64,
    })
}

/// Returns the standard error under the assumption that every trial is a separate case.
///
/// Only for comparison with the clustered error: their ratio measures how similar the trials of a case are.
/// Absent with fewer than two trials.
pub fn naive_error(cases: impl Iterator<Item = CaseRate>) -> Option<f64> {
    let (passed, counted) = cases
        .fold((0, 0), |(passed, counted), case| (passed + case.passed, counted + case.counted));
    let rate = CaseRate { passed, counted }.rate()?;
    (counted > 1).then(|| (rate * (1.0 - rate) / (counted - 1) as f64).sqrt())
}

/// Returns the mean, its standard error (absent for one value) and the number of values.
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
    use crate::rate::clopper_pearson;
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
                [0.781250, 0.099525, 0.545912, 1.016588, 11.853583, 0.457663, 0.959916],
            ),
            (
                of_four([4, 3, 3, 2, 2, 3, 0, 3]),
                [0.625, 0.105644, 0.375191, 0.874809, 14.427504, 0.339644, 0.857754],
            ),
            (uneven, [0.652778, 0.152778, 0.260050, 1.045506, 5.645284, 0.201389, 0.956256]),
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
        near(all.interval.low, 0.630583);
        assert_eq!(all.interval.high, 1.0);
    }

    #[test]
    fn values_agree_with_reference_values() {
        for (cases, [mean, error, low, high, ..]) in table() {
            let estimate = mean_value(&scores(&cases)).unwrap();
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
    fn single_case_has_its_own_interval() {
        let one = mean_pass_rate(cases(&[(3, 5), (0, 0)]).into_iter()).unwrap();
        assert_eq!(one.interval, wilson(3, 5));
        assert_eq!((one.error, one.cases), (None, 1));
        assert_eq!(mean_pass_rate(cases(&[(0, 0)]).into_iter()), None);
        assert_eq!(mean_value(&[0.5]), None);
        assert_eq!(mean_score(&[]), None);
    }

    /// With one trial per case, cases are trials and the interval is Clopper and Pearson's.
    #[test]
    fn one_trial_per_case_is_clopper_pearson() {
        let single: Vec<CaseRate> =
            cases(&[(1, 1); 16]).into_iter().chain(cases(&[(0, 1); 4])).collect();
        let estimate = mean_pass_rate(single.into_iter()).unwrap();
        assert_eq!(estimate.effective_size, 20.0);
        let exact = clopper_pearson(16, 20);
        near(estimate.interval.low, exact.low);
        near(estimate.interval.high, exact.high);
    }

    #[test]
    fn few_cases_are_two_to_nine() {
        let few = |number| {
            mean_pass_rate(vec![cases(&[(1, 2)])[0]; number].into_iter()).unwrap().has_few_cases()
        };
        assert_eq!([1, 2, 9, 10].map(few), [false, true, true, false]);
    }

    /// Coverage near 1, where a t interval fails and Wilson's at the effective size covers 93 % of 20 cases
    /// with one trial.
    #[test]
    fn covers_rates_near_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for (number, trials, t_high, low) in [(10, 3, 0.85, 0.97), (20, 1, 0.72, 0.95)] {
            let (mut exact, mut t) = (0, 0);
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
                let by_t = mean_value(&scores(&cases)).unwrap();
                let by_size = mean_pass_rate(cases.into_iter()).unwrap();
                t += u32::from(by_t.interval.contains(0.95));
                exact += u32::from(by_size.interval.contains(0.95));
            }
            assert!(f64::from(t) / 600.0 < t_high, "{t}");
            assert!(f64::from(exact) / 600.0 > low, "{exact}");
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
                prop_assert!(estimate.interval.low >= 0.0 && estimate.interval.high <= 1.0);
            }
            if let Some(estimate) = mean_value(&scores(&cases)) {
                prop_assert!(estimate.interval.contains(estimate.mean), "{estimate:?}");
            }
        }
    }
}
