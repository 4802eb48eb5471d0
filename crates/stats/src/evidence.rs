//! Evidence about the true pass rate.
//!
//! A verdict concerns the planned trials; this concerns the rate behind them. It is anytime-valid: it may
//! be checked after every trial, with any stopping rule.

use crate::beta;
use crate::rate::Interval;

/// Evidence for a true rate on either side of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateEvidence {
    /// For a rate above the threshold.
    pub above: f64,
    /// For a rate below the threshold.
    pub below: f64,
}

/// Conclusion about the true rate at a chosen risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrueRate {
    /// Above the threshold.
    Above,
    /// Below the threshold.
    Below,
    /// Neither is established.
    Unresolved,
}

impl RateEvidence {
    /// Computes the evidence of `passed` and `failed` trials about the threshold `rate`.
    ///
    /// It is the likelihood averaged over all rates beyond `rate`, divided by the likelihood at `rate` (a
    /// mixture as in Robbins 1970, one side at a time). No rate is above 1 or below 0.
    pub fn new(passed: u64, failed: u64, rate: f64) -> RateEvidence {
        let ln = LnEvidence::new(passed, failed, rate);
        RateEvidence { above: ln.above.exp(), below: ln.below.exp() }
    }

    /// Returns the conclusion at risk `alpha` on either side.
    pub fn true_rate(self, alpha: f64) -> TrueRate {
        let bound = 1.0 / alpha;
        if self.above >= bound {
            TrueRate::Above
        } else if self.below >= bound {
            TrueRate::Below
        } else {
            TrueRate::Unresolved
        }
    }
}

/// Returns the confidence sequence: all rates against which neither side's evidence reaches 2/`alpha`.
///
/// It contains the true rate after all trials simultaneously with probability 1 - `alpha`, so it is valid
/// after an early stop, unlike an interval for a fixed number of trials. It follows from Ville's
/// inequality (1939) for the mixtures above.
pub fn confidence_sequence(passed: u64, failed: u64, alpha: f64) -> Interval {
    let bound = (2.0 / alpha).ln();
    let rate = if passed + failed == 0 { 0.5 } else { passed as f64 / (passed + failed) as f64 };
    let above = |p: f64| LnEvidence::new(passed, failed, p).above < bound;
    let below = |p: f64| LnEvidence::new(passed, failed, p).below < bound;
    Interval {
        low: if passed == 0 { 0.0 } else { last_inside(rate, 0.0, above) },
        high: if failed == 0 { 1.0 } else { last_inside(rate, 1.0, below) },
    }
}

/// Bisects between a point inside and a point outside.
fn last_inside(mut inside: f64, mut outside: f64, is_inside: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = 0.5 * (inside + outside);
        if middle == inside || middle == outside || (inside - outside).abs() < 1e-15 {
            return inside;
        }
        if is_inside(middle) { inside = middle } else { outside = middle }
    }
}

/// Logarithms of the evidence: numerator and denominator underflow after a few hundred trials.
struct LnEvidence {
    above: f64,
    below: f64,
}

impl LnEvidence {
    fn new(passed: u64, failed: u64, rate: f64) -> LnEvidence {
        let (s, f) = (passed as f64, failed as f64);
        let ln_beta = beta::ln_beta(s + 1.0, f + 1.0);
        let tails = beta::tails(s + 1.0, f + 1.0, rate);
        let (ln_rate, ln_rest) = (rate.ln(), (-rate).ln_1p());
        let likelihood = power(s, ln_rate) + power(f, ln_rest);
        LnEvidence {
            above: if rate >= 1.0 {
                f64::NEG_INFINITY
            } else {
                ln_beta + tails.above - ln_rest - likelihood
            },
            below: if rate <= 0.0 {
                f64::NEG_INFINITY
            } else {
                ln_beta + tails.below - ln_rate - likelihood
            },
        }
    }
}

/// ln x^`exponent`, with 0^0 = 1.
fn power(exponent: f64, ln: f64) -> f64 {
    if exponent == 0.0 { 0.0 } else { exponent * ln }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{near, six_digits};
    use proptest::prelude::*;

    /// Reference values: SciPy 1.17 from the formula.
    #[test]
    fn agrees_with_scipy() {
        let table = [
            (12, 0, 0.7, 18.3455, 0.0769231),
            (40, 10, 0.7, 1.57858, 0.0487887),
            (40, 10, 0.9, 0.140414, 1.41929),
        ];
        for (passed, failed, rate, above, below) in table {
            let evidence = RateEvidence::new(passed, failed, rate);
            six_digits(evidence.above, above);
            six_digits(evidence.below, below);
        }
    }

    /// Reference values: SciPy 1.17, bisection.
    #[test]
    fn sequences_agree_with_scipy() {
        for (passed, failed, low, high) in
            [(10, 0, 0.595397, 1.0), (8, 2, 0.339054, 0.992654), (40, 10, 0.595889, 0.940021)]
        {
            let sequence = confidence_sequence(passed, failed, 0.05);
            near(sequence.low, low);
            near(sequence.high, high);
        }
        assert_eq!(confidence_sequence(0, 0, 0.05), Interval::UNIT);
    }

    /// The first n, up to 60, that shows "above" with 0, 1, 2, … failures.
    fn first_above(rate: f64) -> Vec<u64> {
        (0..60)
            .map_while(|failed| {
                (failed + 1..=60).find(|n| {
                    RateEvidence::new(n - failed, failed, rate).true_rate(0.05) == TrueRate::Above
                })
            })
            .collect()
    }

    /// The failures that show "below" with 0, 1, 2, … passes.
    fn first_below(rate: f64) -> Vec<u64> {
        let shows = |passed, failed| {
            RateEvidence::new(passed, failed, rate).true_rate(0.05) == TrueRate::Below
        };
        (0..12).map_while(|passed| (0..=60).find(|&failed| shows(passed, failed))).collect()
    }

    /// Reference values: exact rationals, all n up to 60.
    #[test]
    fn boundaries_agree_with_exact_ones() {
        assert_eq!(first_above(0.7), [13, 20, 26, 32, 37, 42, 48, 52, 57]);
        assert_eq!(first_above(0.8), [20, 31, 41, 50, 58]);
        assert_eq!(first_above(0.9), [43]);
        assert_eq!(first_below(0.7), [4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14, 15]);
        assert_eq!(first_below(0.8), [3, 4, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11]);
        assert_eq!(first_below(0.9), [2, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6, 7]);
    }

    #[test]
    fn rates_of_zero_and_one_are_supported() {
        let none_failed = RateEvidence::new(50, 0, 1.0);
        assert_eq!(none_failed.above, 0.0);
        six_digits(none_failed.below, 0.0196078);
        let none_passed = RateEvidence::new(0, 50, 0.0);
        assert_eq!(none_passed.below, 0.0);
        six_digits(none_passed.above, 0.0196078);
        assert_eq!(RateEvidence::new(50, 0, 1.0).true_rate(0.05), TrueRate::Unresolved);
        assert_eq!(RateEvidence::new(50, 1, 1.0).true_rate(0.05), TrueRate::Below);
        assert_eq!(RateEvidence::new(0, 50, 0.0).true_rate(0.05), TrueRate::Unresolved);
        assert_eq!(RateEvidence::new(1, 50, 0.0).true_rate(0.05), TrueRate::Above);
        // Far beyond what plain floating point holds.
        assert_eq!(RateEvidence::new(90_000, 10_000, 0.1).true_rate(0.05), TrueRate::Above);
        assert_eq!(RateEvidence::new(10_000, 90_000, 0.9).true_rate(0.05), TrueRate::Below);
    }

    proptest! {
        #[test]
        fn sequences_contain_the_rate_and_agree_with_the_evidence(
            passed in 0_u64..300, failed in 0_u64..300, rate in 0.001_f64..0.999,
        ) {
            prop_assume!(passed + failed > 0);
            let sequence = confidence_sequence(passed, failed, 0.05);
            prop_assert!(sequence.contains(passed as f64 / (passed + failed) as f64));
            prop_assume!((rate - sequence.low).abs() > 1e-9 && (rate - sequence.high).abs() > 1e-9);
            let evidence = RateEvidence::new(passed, failed, rate);
            prop_assert_eq!(sequence.contains(rate), evidence.above < 40.0 && evidence.below < 40.0);
        }

        /// Evidence is never strong on both sides; passes and failures are symmetric.
        #[test]
        fn sides_are_symmetric(passed in 0_u64..300, failed in 0_u64..300, rate in 0.01_f64..0.99) {
            let one = RateEvidence::new(passed, failed, rate);
            let other = RateEvidence::new(failed, passed, 1.0 - rate);
            let same = one.above == other.below || (one.above / other.below - 1.0).abs() < 1e-7;
            prop_assert!(same, "{one:?} {other:?}");
            prop_assert!(one.above.min(one.below) <= 1.0 + 1e-9);
        }
    }
}
