//! Paired differences of two targets by Student's t: effect size, and equivalence within a margin.
//!
//! [`SignFlip`](crate::SignFlip) decides whether the targets differ; these figures supplement it.

use crate::mean::{CaseRate, moments};
use crate::rate::Interval;
use crate::student;

/// Summary of the differences between two targets, one per case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedDifferences {
    /// Mean difference, second minus first.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Number of cases.
    pub cases: u64,
}

/// Returns the difference of the rates, second minus first, for each case with judged trials in both
/// targets.
pub fn differences(pairs: impl IntoIterator<Item = (CaseRate, CaseRate)>) -> Vec<f64> {
    pairs.into_iter().filter_map(|(first, second)| Some(second.rate()? - first.rate()?)).collect()
}

impl PairedDifferences {
    /// Summarises one difference per case; absent with fewer than two.
    pub fn new(differences: &[f64]) -> Option<PairedDifferences> {
        let (mean, error, cases) = moments(differences.iter().copied())?;
        Some(PairedDifferences { mean, error: error?, cases })
    }

    /// Returns the standard deviation of the differences.
    pub fn deviation(&self) -> f64 {
        self.error * (self.cases as f64).sqrt()
    }

    /// Returns the standardised effect d_z (Cohen 1988): mean over standard deviation. Absent if all
    /// differences are equal.
    pub fn effect(&self) -> Option<f64> {
        (self.error > 0.0).then(|| self.mean / self.deviation())
    }

    /// Returns Student's paired t statistic (1908); infinite if all differences are equal and not 0.
    pub fn t(&self) -> f64 {
        ratio(self.mean, self.error)
    }

    /// Returns the two-sided p-value of [`t`](PairedDifferences::t).
    pub fn p_value(&self) -> f64 {
        2.0 * student::above(self.t().abs(), self.freedom())
    }

    /// Returns the t interval of the mean difference.
    pub fn interval(&self) -> Interval {
        self.interval_at(0.975)
    }

    /// Returns the p-value for "equivalent within `margin`": the larger of two one-sided t tests (TOST,
    /// Schuirmann 1987).
    ///
    /// It is at most `alpha` exactly if the t interval with `alpha` on either side is within `margin` of 0.
    /// A test that finds no difference does not show equivalence.
    pub fn equivalence(&self, margin: f64) -> f64 {
        let lower = student::above(ratio(self.mean + margin, self.error), self.freedom());
        let upper = student::above(ratio(margin - self.mean, self.error), self.freedom());
        lower.max(upper)
    }

    fn interval_at(&self, share: f64) -> Interval {
        let half = student::quantile(share, self.freedom()) * self.error;
        Interval { low: self.mean - half, high: self.mean + half }
    }

    fn freedom(&self) -> f64 {
        (self.cases - 1) as f64
    }
}

/// `part / error`, 0 for 0/0.
fn ratio(part: f64, error: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;

    fn example() -> PairedDifferences {
        let a = [4, 4, 3, 4, 2, 4, 1, 3];
        let b = [4, 3, 3, 2, 2, 3, 0, 3];
        let of_four = |passed| CaseRate { passed, counted: 4 };
        PairedDifferences::new(&differences(
            a.into_iter().map(of_four).zip(b.into_iter().map(of_four)),
        ))
        .unwrap()
    }

    /// Reference values: SciPy 1.17, `ttest_rel`.
    #[test]
    fn agrees_with_scipy() {
        let paired = example();
        near(paired.mean, -0.156250);
        near(paired.error, 0.065763);
        near(paired.t(), -2.375955);
        near(paired.p_value(), 0.049174);
        near(paired.effect().unwrap(), -0.840027);
        near(paired.interval().low, -0.311755);
        near(paired.interval().high, -0.000745);
    }

    /// Reference values: statsmodels 0.15, `ttost_paired`.
    #[test]
    fn equivalence_agrees_with_statsmodels() {
        for (margin, p) in [(0.1, 0.789665), (0.2, 0.263592), (0.3, 0.032537)] {
            near(example().equivalence(margin), p);
        }
    }

    #[test]
    fn cases_missing_on_one_side_are_left_out() {
        let (none, half) = (CaseRate { passed: 0, counted: 0 }, CaseRate { passed: 1, counted: 2 });
        assert_eq!(differences([(none, half), (half, none), (half, half)]), [0.0]);
    }

    #[test]
    fn equal_differences_have_defined_statistics() {
        assert_eq!(PairedDifferences::new(&[0.5]), None);
        let same = PairedDifferences::new(&[0.0; 4]).unwrap();
        assert_eq!((same.t(), same.p_value(), same.effect()), (0.0, 1.0, None));
        assert_eq!(same.equivalence(0.1), 0.0);
        let shifted = PairedDifferences::new(&[0.5; 4]).unwrap();
        assert_eq!((shifted.p_value(), shifted.equivalence(0.1)), (0.0, 1.0));
    }

    proptest! {
        #[test]
        fn equivalence_agrees_with_the_interval(
            values in prop::collection::vec(-1.0_f64..1.0, 3..30),
            margin in 0.01_f64..1.0,
        ) {
            let paired = PairedDifferences::new(&values).unwrap();
            let ninety = paired.interval_at(0.95);
            let within = ninety.low >= -margin && ninety.high <= margin;
            let p = paired.equivalence(margin);
            prop_assume!((p - 0.05).abs() > 1e-9);
            prop_assert_eq!(p <= 0.05, within);
        }

        #[test]
        fn interval_agrees_with_the_test(values in prop::collection::vec(-1.0_f64..1.0, 3..30)) {
            let paired = PairedDifferences::new(&values).unwrap();
            prop_assume!((paired.p_value() - 0.05).abs() > 1e-9);
            prop_assert!(paired.interval().contains(paired.mean));
            prop_assert_eq!(paired.p_value() > 0.05, paired.interval().contains(0.0));
        }
    }
}
