//! Correction of a judged pass rate for the errors of the judge.

use crate::Z;
use crate::passk::ProbabilityEstimate;
use crate::rate::Interval;

/// Accuracy of a judge on answers with one human label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelAccuracy {
    /// Answers that the judge labelled correctly.
    pub right: u64,
    /// Answers with this human label.
    pub total: u64,
}

impl LabelAccuracy {
    fn rate(self) -> Option<f64> {
        (self.total > 0).then(|| self.right as f64 / self.total as f64)
    }

    /// Rate and variance with one correct and one incorrect answer added, as the interval requires.
    fn shrunk(self) -> (f64, f64) {
        let size = self.total as f64 + 2.0;
        let rate = (self.right as f64 + 1.0) / size;
        (rate, rate * (1.0 - rate) / size)
    }
}

/// Corrects `rate`, the share of `size` answers that the judge passed, for the judge's errors (Rogan &
/// Gladen 1978), with the interval of Lang and Reiczigel (2014), both within 0..1.
///
/// `passes` and `failures` are the accuracies on answers with the human label pass and fail. With several
/// trials per case `size` is [`MeanEstimate::effective_size`](crate::MeanEstimate). Absent if the judge is
/// no better than chance, or nothing was judged or labelled.
pub fn corrected_rate(
    rate: f64,
    size: f64,
    passes: LabelAccuracy,
    failures: LabelAccuracy,
) -> Option<ProbabilityEstimate> {
    let raw = unclipped(rate, size, passes, failures)?;
    Some(ProbabilityEstimate { value: raw.value.clamp(0.0, 1.0), interval: raw.interval.clipped() })
}

fn unclipped(
    rate: f64,
    size: f64,
    passes: LabelAccuracy,
    failures: LabelAccuracy,
) -> Option<ProbabilityEstimate> {
    let skill = passes.rate()? + failures.rate()? - 1.0;
    let value = (rate + failures.rate()? - 1.0) / skill;
    let (sensitivity, pass_variance) = passes.shrunk();
    let (specificity, fail_variance) = failures.shrunk();
    let shrunk_skill = sensitivity + specificity - 1.0;
    // NaN fails these comparisons as well.
    if !(skill > 0.0 && shrunk_skill > 0.0 && size > 0.0) {
        return None;
    }
    let square = Z * Z;
    let judged = (size * rate + 0.5 * square) / (size + square);
    let centre = (judged + specificity - 1.0) / shrunk_skill;
    let shift = 2.0 * square * (centre * pass_variance - (1.0 - centre) * fail_variance);
    let variance = judged * (1.0 - judged) / (size + square)
        + centre * centre * pass_variance
        + (1.0 - centre).powi(2) * fail_variance;
    let half = Z * variance.sqrt() / shrunk_skill;
    Some(ProbabilityEstimate {
        value,
        interval: Interval { low: centre + shift - half, high: centre + shift + half },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flake::binomial_reaches;
    use crate::testing::near;
    use crate::wilson;
    use proptest::prelude::*;

    fn of(right: u64, total: u64) -> LabelAccuracy {
        LabelAccuracy { right, total }
    }

    /// Reference values: the formulas in SciPy 1.17.
    #[test]
    fn agrees_with_scipy() {
        let table = [
            (200.0, of(45, 50), of(40, 50), 0.857143, 0.735055, 1.016224),
            (100.0, of(38, 40), of(36, 40), 0.823529, 0.707016, 0.961378),
        ];
        for (size, passes, failures, value, low, high) in table {
            let raw = unclipped(0.8, size, passes, failures).unwrap();
            near(raw.value, value);
            near(raw.interval.low, low);
            near(raw.interval.high, high);
            let clipped = corrected_rate(0.8, size, passes, failures).unwrap();
            near(clipped.interval.high, high.min(1.0));
        }
    }

    #[test]
    fn judge_without_skill_cannot_be_corrected() {
        assert_eq!(corrected_rate(0.8, 100.0, of(25, 50), of(25, 50)), None);
        assert_eq!(corrected_rate(0.8, 100.0, of(10, 50), of(10, 50)), None);
        // No better than chance, although the shrunken rates look better.
        assert_eq!(corrected_rate(0.8, 100.0, of(0, 1), of(100, 100)), None);
        assert_eq!(corrected_rate(0.8, 100.0, of(0, 0), of(10, 10)), None);
        assert_eq!(corrected_rate(0.8, 0.0, of(9, 10), of(9, 10)), None);
        // More passes than even a perfect target would get from this judge.
        assert_eq!(corrected_rate(1.0, 100.0, of(9, 10), of(9, 10)).unwrap().value, 1.0);
    }

    /// Coverage for a true rate of .8, 200 answers and a judge of .9 and .8 known from 50 labels
    /// each, by summing over all results; the uncorrected Wilson interval is about the judge, not the
    /// target. Reference values: SciPy 1.17.
    #[test]
    fn interval_covers_the_true_rate() {
        let judged = binomial_probabilities(200, 0.8 * 0.9 + 0.2 * 0.2);
        let (right_passes, right_failures) =
            (binomial_probabilities(50, 0.9), binomial_probabilities(50, 0.8));
        let (mut corrected, mut plain) = (0.0, 0.0);
        for (passed, probability) in (0..).zip(judged) {
            if wilson(passed, 200).contains(0.8) {
                plain += probability;
            }
            for (a, of_passes) in (0..).zip(&right_passes) {
                for (b, of_failures) in (0..).zip(&right_failures) {
                    let weight = probability * of_passes * of_failures;
                    if weight < 1e-12 {
                        continue;
                    }
                    let found = corrected_rate(passed as f64 / 200.0, 200.0, of(a, 50), of(b, 50));
                    if found.is_some_and(|found| found.interval.contains(0.8)) {
                        corrected += weight;
                    }
                }
            }
        }
        near(corrected, 0.957023);
        near(plain, 0.721693);
    }

    /// Binomial probabilities of 0..=`number`.
    fn binomial_probabilities(number: u64, rate: f64) -> Vec<f64> {
        let reaches = |hits| binomial_reaches(hits, number, rate);
        (0..=number).map(|hits| reaches(hits) - reaches(hits + 1)).collect()
    }

    proptest! {
        /// A perfect judge with very many labels needs no correction.
        #[test]
        fn perfect_judge_needs_no_correction(passed in 0_u64..=200) {
            let rate = passed as f64 / 200.0;
            let found = corrected_rate(rate, 200.0, of(1_000_000, 1_000_000), of(1_000_000, 1_000_000)).unwrap();
            prop_assert!((found.value - rate).abs() < 1e-9);
            prop_assert!(found.interval.contains(rate) || passed == 0 || passed == 200);
            // Close to Wilson's, a little wider: the half width lacks one correction.
            prop_assert!((found.interval.low - wilson(passed, 200).low).abs() < 0.01);
        }
    }
}
