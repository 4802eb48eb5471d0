//! Flakiness: disagreement between trials and between runs.

use crate::beta;
use crate::mean::CaseRate;

/// Whether the judged trials of a case disagree.
///
/// The flag becomes more likely with more trials, so rank cases by [`flake_rate`].
pub fn is_flaky(case: CaseRate) -> bool {
    case.passed > 0 && case.passed < case.counted
}

/// Returns an unbiased estimate of the probability that two trials of a case disagree: the share of
/// disagreeing pairs (Simpson 1949). Absent with fewer than two judged trials.
pub fn flake_rate(case: CaseRate) -> Option<f64> {
    let (s, n) = (case.passed as f64, case.counted as f64);
    (case.counted > 1).then(|| 2.0 * s * (n - s) / (n * (n - 1.0)))
}

/// Returns the probability that two runs of the same target disagree about a case: twice the variance of a
/// verdict.
///
/// Each of `planned` trials passes with probability `rate`, and `needed` must pass. If the threshold is at
/// the true rate, it stays near one half for any number of trials.
pub fn disagreement(rate: f64, needed: u64, planned: u64) -> f64 {
    let passes = binomial_reaches(needed, planned, rate);
    2.0 * passes * (1.0 - passes)
}

/// P(Bin(`planned`, `rate`) >= `needed`).
pub(crate) fn binomial_reaches(needed: u64, planned: u64, rate: f64) -> f64 {
    if needed == 0 {
        1.0
    } else if needed > planned {
        0.0
    } else {
        beta::cumulative(needed as f64, (planned - needed + 1) as f64, rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;

    fn of(passed: u64, counted: u64) -> CaseRate {
        CaseRate { passed, counted }
    }

    /// Reference values: exact fractions.
    #[test]
    fn flake_rates_agree_with_fractions() {
        for (passed, counted, rate) in [(3, 5, 0.6), (8, 10, 0.355556), (16, 20, 0.336842)] {
            near(flake_rate(of(passed, counted)).unwrap(), rate);
        }
        assert_eq!(flake_rate(of(1, 1)), None);
        assert_eq!(flake_rate(of(5, 5)), Some(0.0));
        assert_eq!(
            [of(0, 5), of(5, 5), of(1, 5), of(0, 0)].map(is_flaky),
            [false, false, true, false]
        );
    }

    /// Reference values: SciPy 1.17, `binom.sf`.
    #[test]
    fn disagreement_agrees_with_scipy() {
        for (rate, needed, planned, expected) in
            [(0.8, 3, 3, 0.499712), (0.9, 4, 5, 0.149649), (0.8, 40, 50, 0.486036)]
        {
            near(disagreement(rate, needed, planned), expected);
        }
        assert_eq!(disagreement(0.5, 0, 10), 0.0);
        assert_eq!(disagreement(0.5, 11, 10), 0.0);
    }

    proptest! {
        /// Averaged over all results it is 2p(1-p).
        #[test]
        fn flake_rate_is_unbiased(counted in 2_u64..40, rate in 0.0_f64..=1.0) {
            let probability = |passed| binomial_reaches(passed, counted, rate) - binomial_reaches(passed + 1, counted, rate);
            let mean: f64 = (0..=counted).map(|s| probability(s) * flake_rate(of(s, counted)).unwrap()).sum();
            prop_assert!((mean - 2.0 * rate * (1.0 - rate)).abs() < 1e-9);
        }
    }
}
