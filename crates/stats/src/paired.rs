//! Two targets over the same cases by Student's t: size of the effect, and equality within a margin.
//!
//! Whether they differ is decided by [`SignFlip`](crate::SignFlip); this is what stands beside it.

use crate::mean::{CaseRate, moments};
use crate::rate::Interval;
use crate::student;

/// The differences of two targets, one per case, summarised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// Mean difference, second minus first.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// How many cases.
    pub cases: u64,
}

/// The difference of the rates of each case that has a judged trial in both targets, second minus
/// first.
pub fn differences(pairs: impl IntoIterator<Item = (CaseRate, CaseRate)>) -> Vec<f64> {
    pairs.into_iter().filter_map(|(first, second)| Some(second.rate()? - first.rate()?)).collect()
}

impl Paired {
    /// Summarises one difference per case; absent with fewer than two.
    pub fn new(differences: &[f64]) -> Option<Paired> {
        let (mean, error, cases) = moments(differences.iter().copied())?;
        Some(Paired { mean, error: error?, cases })
    }

    /// Standard deviation of the differences.
    pub fn deviation(&self) -> f64 {
        self.error * (self.cases as f64).sqrt()
    }

    /// The standardised effect d_z (Cohen 1988): mean over standard deviation. Absent when all
    /// differences are equal.
    pub fn effect(&self) -> Option<f64> {
        (self.error > 0.0).then(|| self.mean / self.deviation())
    }

    /// Student's paired t statistic (1908); infinite when all differences are equal but not 0.
    pub fn t(&self) -> f64 {
        ratio(self.mean, self.error)
    }

    /// Two-sided p-value of [`t`](Paired::t).
    pub fn p_value(&self) -> f64 {
        2.0 * student::above(self.t().abs(), self.freedom())
    }

    /// The t interval of the mean difference.
    pub fn interval(&self) -> Interval {
        self.interval_at(0.975)
    }

    /// The p-value for "equivalent within `margin`": the larger of two one-sided t tests (TOST,
    /// Schuirmann 1987).
    ///
    /// At most `alpha` exactly when the t interval with `alpha` on either side lies within `margin`
    /// of 0. Finding no difference is not the same and shows nothing.
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

    fn example() -> Paired {
        let a = [4, 4, 3, 4, 2, 4, 1, 3];
        let b = [4, 3, 3, 2, 2, 3, 0, 3];
        let of_four = |passed| CaseRate { passed, counted: 4 };
        Paired::new(&differences(a.into_iter().map(of_four).zip(b.into_iter().map(of_four))))
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
    fn no_spread_is_no_crash() {
        assert_eq!(Paired::new(&[0.5]), None);
        let same = Paired::new(&[0.0; 4]).unwrap();
        assert_eq!((same.t(), same.p_value(), same.effect()), (0.0, 1.0, None));
        assert_eq!(same.equivalence(0.1), 0.0);
        let shifted = Paired::new(&[0.5; 4]).unwrap();
        assert_eq!((shifted.p_value(), shifted.equivalence(0.1)), (0.0, 1.0));
    }

    proptest! {
        #[test]
        fn equivalent_is_the_interval_within_the_margin(
            values in prop::collection::vec(-1.0_f64..1.0, 3..30),
            margin in 0.01_f64..1.0,
        ) {
            let paired = Paired::new(&values).unwrap();
            let ninety = paired.interval_at(0.95);
            let within = ninety.low >= -margin && ninety.high <= margin;
            let p = paired.equivalence(margin);
            prop_assume!((p - 0.05).abs() > 1e-9);
            prop_assert_eq!(p <= 0.05, within);
        }

        #[test]
        fn interval_agrees_with_the_test(values in prop::collection::vec(-1.0_f64..1.0, 3..30)) {
            let paired = Paired::new(&values).unwrap();
            prop_assume!((paired.p_value() - 0.05).abs() > 1e-9);
            prop_assert!(paired.interval().contains(paired.mean));
            prop_assert_eq!(paired.p_value() > 0.05, paired.interval().contains(0.0));
        }
    }
}
