//! Sign-flip test for a difference between two targets, and the interval that agrees with it.
//!
//! If the two targets are equal, the difference of each case has either sign with the same probability.

use crate::rate::Interval;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// Maximum number of cases for which all sign vectors are enumerated.
const MAX_EXACT_CASES: usize = 16;

/// Number of random sign vectors for more cases; the observed signs are one more.
const RANDOM_FLIPS: usize = 9_999;

/// Means closer than this, relative to the largest difference when that exceeds 1, are equal.
const TOLERANCE: f64 = 1e-12;

/// Differences between two targets, one per case, under many sign vectors.
///
/// The mean of flipped differences is linear in a shift of the differences, so one set of flips serves the
/// test and the interval.
///
/// ```
/// use bakeoff_stats::SignFlip;
///
/// let worse = SignFlip::new(&[-0.5, -0.25, -0.25, -0.75, -0.25, -0.5], 7).expect("six cases");
/// assert_eq!(worse.p_value(), 2.0 / 64.0);
/// assert!(worse.is_regression(0.05));
/// ```
#[derive(Debug, Clone)]
pub struct SignFlip {
    mean: f64,
    tolerance: f64,
    exact: bool,
    flips: Vec<Flip>,
}

/// One sign vector, reduced to two means.
#[derive(Debug, Clone, Copy)]
struct Flip {
    /// Mean of the flipped differences.
    mean: f64,
    /// Mean of the signs.
    signs: f64,
}

impl Flip {
    /// Returns the mean of the flipped differences after subtracting `shift` from each difference.
    fn shifted(self, shift: f64) -> f64 {
        self.mean - self.signs * shift
    }
}

impl SignFlip {
    /// Prepares the test (Fisher 1935) for one difference per case; absent without cases or if a difference
    /// is not finite.
    ///
    /// It uses all sign vectors for up to 16 cases, and 9 999 seeded random ones for more.
    pub fn new(differences: &[f64], seed: u64) -> Option<SignFlip> {
        let cases = differences.len();
        if cases == 0 || differences.iter().any(|difference| !difference.is_finite()) {
            return None;
        }
        let exact = cases <= MAX_EXACT_CASES;
        let number = if exact { 1 << cases } else { RANDOM_FLIPS };
        let largest = differences.iter().fold(1.0_f64, |max, value| max.max(value.abs()));
        let count = cases as f64;
        let total: f64 = differences.iter().sum();
        let flips = positive_parts(differences, number, exact, seed)
            .into_iter()
            .map(|(sum, pluses)| Flip {
                mean: (2.0 * sum - total) / count,
                signs: (2.0 * f64::from(pluses) - count) / count,
            })
            .collect();
        Some(SignFlip { mean: total / count, tolerance: TOLERANCE * largest, exact, flips })
    }

    /// Returns the mean difference.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Whether all sign vectors were used.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns the share of sign vectors whose mean is at least as far from 0 as the observed one.
    ///
    /// With random vectors the observed one counts as one of them, so the share is never 0 (Phipson
    /// & Smyth 2010).
    pub fn p_value(&self) -> f64 {
        self.p_value_at(0.0)
    }

    /// Returns the p-value of the hypothesis that the targets differ by `shift`.
    pub fn p_value_at(&self, shift: f64) -> f64 {
        let observed = (self.mean - shift).abs() - self.tolerance;
        let hits = self.flips.iter().filter(|flip| flip.shifted(shift).abs() >= observed).count();
        (hits + self.extra()) as f64 / self.total() as f64
    }

    /// Whether the second target is worse than the first at level `alpha`.
    pub fn is_regression(&self, alpha: f64) -> bool {
        self.mean < 0.0 && self.p_value() <= alpha
    }

    /// Returns the interval of all shifts that the test does not reject at level `alpha`.
    ///
    /// It contains 0 exactly if [`p_value`](SignFlip::p_value) exceeds `alpha`. Absent if there are too few
    /// sign vectors to reject any shift: with five cases or fewer at level 0.05.
    pub fn interval(&self, alpha: f64) -> Option<Interval> {
        // A flip accepts the shifts for which |r + signs·u| >= |u|, with u = mean - shift: an
        // interval around u = 0. So acceptance only falls with the distance from the mean, and the
        // ends are where the count drops to `alpha`.
        let mut largest = Vec::with_capacity(self.flips.len());
        let mut smallest = Vec::with_capacity(self.flips.len());
        let mut always = self.extra();
        for flip in &self.flips {
            let (less, more) = (1.0 - flip.signs, 1.0 + flip.signs);
            if less <= 0.0 || more <= 0.0 {
                always += 1;
                continue;
            }
            let r = flip.mean - flip.signs * self.mean;
            largest.push((r / less).max(-r / more));
            smallest.push((r / less).min(-r / more));
        }
        let needed = self.accepting(alpha).checked_sub(always).filter(|&needed| needed > 0)?;
        let furthest = nth_largest(&mut largest, needed)?;
        smallest.iter_mut().for_each(|end| *end = -*end);
        let nearest = -nth_largest(&mut smallest, needed)?;
        let interval = Interval { low: self.mean - furthest, high: self.mean - nearest };
        Some(interval.agreeing(self.p_value(), alpha))
    }

    /// Returns the smallest number of accepting sign vectors that makes a p-value exceed `alpha`.
    fn accepting(&self, alpha: f64) -> usize {
        let total = self.total() as f64;
        let exceeds = |count: usize| count as f64 / total > alpha;
        let guess = (alpha.clamp(0.0, 1.0) * total) as usize;
        if exceeds(guess) { guess } else { guess + 1 }
    }

    /// Number of vectors for the observed signs, which random vectors do not include deliberately.
    fn extra(&self) -> usize {
        usize::from(!self.exact)
    }

    fn total(&self) -> usize {
        self.flips.len() + self.extra()
    }
}

/// Returns, for each sign vector, the sum and number of the differences that keep their sign.
///
/// Cases are processed in blocks of eight: the 256 partial sums of a block are computed once, then each
/// vector costs one lookup per block. Ten thousand cases with ten thousand vectors take milliseconds.
fn positive_parts(differences: &[f64], number: usize, exact: bool, seed: u64) -> Vec<(f64, u32)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut parts = vec![(0.0, 0_u32); number];
    let mut signs = vec![0_u8; number];
    for (block, values) in differences.chunks(8).enumerate() {
        let mut sums = [0.0; 256];
        for (bit, value) in values.iter().enumerate() {
            let half = 1 << bit;
            let (known, next) = sums.split_at_mut(half);
            for (next, known) in next.iter_mut().zip(known) {
                *next = *known + value;
            }
        }
        if exact {
            for (vector, sign) in signs.iter_mut().enumerate() {
                *sign = (vector >> (8 * block)) as u8;
            }
        } else {
            let used = 0xff_u8 >> (8 - values.len());
            rng.fill_bytes(&mut signs);
            signs.iter_mut().for_each(|sign| *sign &= used);
        }
        for (part, &sign) in parts.iter_mut().zip(&signs) {
            part.0 += sums[usize::from(sign)];
            part.1 += sign.count_ones();
        }
    }
    parts
}

/// Returns the `rank`th largest value, counted from 1.
fn nth_largest(values: &mut [f64], rank: usize) -> Option<f64> {
    let index = rank.checked_sub(1).filter(|&index| index < values.len())?;
    Some(*values.select_nth_unstable_by(index, |a, b| b.total_cmp(a)).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcnemar::mcnemar;
    use crate::testing::near;
    use proptest::prelude::*;
    use rand::RngExt;

    const A: [f64; 8] = [1.0, 1.0, 0.75, 1.0, 0.5, 1.0, 0.25, 0.75];
    const B: [f64; 8] = [1.0, 0.75, 0.75, 0.5, 0.5, 0.75, 0.0, 0.75];

    fn differences() -> Vec<f64> {
        A.iter().zip(B).map(|(a, b)| b - a).collect()
    }

    /// Reference values: all 256 sign vectors in NumPy; the interval by scanning shifts.
    #[test]
    fn agrees_with_reference_values() {
        let test = SignFlip::new(&differences(), 0).unwrap();
        assert!(test.is_exact());
        assert_eq!(test.mean(), -0.15625);
        assert_eq!(test.p_value(), 32.0 / 256.0);
        let interval = test.interval(0.05).unwrap();
        near(interval.low, -1.0 / 3.0);
        assert_eq!(interval.high, 0.0);
    }

    #[test]
    fn regression_needs_both_level_and_direction() {
        let worse = SignFlip::new(&[-0.25; 6], 0).unwrap();
        assert_eq!(worse.p_value(), 2.0 / 64.0);
        assert!(worse.is_regression(0.05));
        assert!(worse.is_regression(2.0 / 64.0));
        assert!(!worse.is_regression(0.03));
        assert!(!SignFlip::new(&[0.25; 6], 0).unwrap().is_regression(0.05));
    }

    #[test]
    fn five_cases_reject_nothing() {
        let five = SignFlip::new(&[-1.0; 5], 0).unwrap();
        assert_eq!(five.p_value(), 2.0 / 32.0);
        assert_eq!(five.interval(0.05), None);
        assert!(
            SignFlip::new(&[-1.0, -0.9, -0.8, -0.7, -0.6, -0.5], 0)
                .unwrap()
                .interval(0.05)
                .is_some()
        );
        assert!(SignFlip::new(&[], 0).is_none());
        assert!(SignFlip::new(&[f64::NAN], 0).is_none());
    }

    /// With sampled vectors the answer depends on the seed alone and is close to the exact one,
    /// which for equal differences is McNemar's.
    #[test]
    fn many_cases_use_sampled_sign_vectors() {
        // Not a multiple of eight, so the last block is short.
        for zeros in [0, 185] {
            let mut values = vec![0.0; zeros];
            values.extend([-1.0; 5]);
            values.extend([1.0; 14]);
            let test = SignFlip::new(&values, 3).unwrap();
            assert!(!test.is_exact());
            assert_eq!(test.p_value(), SignFlip::new(&values, 3).unwrap().p_value());
            assert!((test.p_value() - mcnemar(14, 5)).abs() < 0.01, "{}", test.p_value());
        }
        let clear = SignFlip::new(&[1.0; 200], 3).unwrap();
        assert_eq!(clear.p_value(), 1.0 / 10_000.0);
    }

    /// Identical targets, case rates Beta(4, 1), 20 cases of 3 trials: 4,000 pairs differed in 2.4 %.
    /// 69 of 1,000 is the 99.5 % point of the promised 5 %; 27 of 300 likewise.
    #[test]
    fn identical_targets_rarely_differ() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut rate = |pass_rate: f64| {
            f64::from((0..3).map(|_| u32::from(rng.random::<f64>() < pass_rate)).sum::<u32>()) / 3.0
        };
        let mut draw = ChaCha8Rng::seed_from_u64(8);
        let differing = (0..300)
            .filter(|&pair| {
                let differences: Vec<f64> = (0..20)
                    .map(|_| {
                        let pass_rate = draw.random::<f64>().powf(0.25);
                        rate(pass_rate) - rate(pass_rate)
                    })
                    .collect();
                SignFlip::new(&differences, pair).unwrap().p_value() <= 0.05
            })
            .count();
        assert!(differing <= 27, "{differing}");
    }

    /// 10 000 cases; a slow algorithm would be noticeable even in a debug build.
    #[test]
    fn large_runs_are_fast() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let values: Vec<f64> = (0..10_000).map(|_| rng.random::<f64>() - 0.45).collect();
        let test = SignFlip::new(&values, 1).unwrap();
        assert_eq!(test.p_value(), 1.0 / 10_000.0);
        let interval = test.interval(0.05).unwrap();
        // Close to normal theory: 0.05 ± 1.96·0.2887/100.
        assert!(
            (interval.high - interval.low - 2.0 * 1.96 * 0.002887).abs() < 5e-4,
            "{interval:?}"
        );
    }

    fn steps() -> impl Strategy<Value = Vec<i32>> {
        prop::collection::vec(-10_i32..=10, 1..30)
    }

    proptest! {
        #[test]
        fn one_trial_per_case_is_mcnemar(values in prop::collection::vec(-1_i8..=1, 1..=12)) {
            let differences: Vec<f64> = values.iter().copied().map(f64::from).collect();
            let b = values.iter().filter(|&&value| value > 0).count() as u64;
            let c = values.iter().filter(|&&value| value < 0).count() as u64;
            let p = SignFlip::new(&differences, 0).unwrap().p_value();
            prop_assert!((p - mcnemar(b, c)).abs() < 1e-9);
        }

        #[test]
        fn interval_agrees_with_the_test(values in steps(), alpha in 0.01_f64..0.4, shift in -1.0_f64..1.0) {
            let differences: Vec<f64> = values.iter().map(|&value| f64::from(value) / 10.0).collect();
            let test = SignFlip::new(&differences, 5).unwrap();
            if let Some(interval) = test.interval(alpha) {
                prop_assert!(interval.contains(test.mean()));
                prop_assert_eq!(interval.contains(0.0), test.p_value() > alpha);
                // Away from its ends, where rounding decides, it agrees everywhere.
                if (shift - interval.low).abs() > 1e-9 && (shift - interval.high).abs() > 1e-9 {
                    prop_assert_eq!(interval.contains(shift), test.p_value_at(shift) > alpha);
                }
            }
        }
    }
}
