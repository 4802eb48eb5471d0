//! From trials to a case's verdict, from verdicts to the run's.
//!
//! Errors are missing outcomes, neither passes nor failures: a verdict stands when it holds for
//! every way they could have ended.

use crate::rate::Interval;
use crate::threshold::{Decision, Threshold};

/// The share of `planned` trials that pass if everything that is not known fails, and if it passes.
///
/// `failed` are known failures; errors and trials that never ran are not known.
/// [`Threshold::decide`] passes when both ends reach the threshold, fails when neither does, and is
/// open otherwise. Absent for an empty plan.
pub fn rate_bounds(passed: u64, failed: u64, planned: u64) -> Option<Interval> {
    let known = failed.min(planned);
    (planned > 0).then(|| Interval {
        low: passed.min(planned) as f64 / planned as f64,
        high: (planned - known) as f64 / planned as f64,
    })
}

/// A run in which every case must pass: failed if one failed, else open (inconclusive) if one is
/// open, else passed. Without cases nothing is decided.
pub fn all_cases(cases: impl IntoIterator<Item = Decision>) -> Decision {
    let mut verdict = None;
    for case in cases {
        match case {
            Decision::Failed => return Decision::Failed,
            Decision::Open => verdict = Some(Decision::Open),
            Decision::Passed => verdict = verdict.or(Some(Decision::Passed)),
        }
    }
    verdict.unwrap_or(Decision::Open)
}

/// A run in which a share of the `cases` must pass, by exact fractions: passed if enough passed,
/// failed if not enough could even if all `inconclusive` ones did, open otherwise. Without cases
/// nothing is decided.
///
/// Cases that have not run yet are inconclusive; to stop before that certainty, give the verdicts to
/// [`Boundaries`](crate::Boundaries) as trials, in a seeded random order of the cases.
pub fn share_of_cases(
    threshold: Threshold,
    passed: u64,
    inconclusive: u64,
    cases: u64,
) -> Decision {
    let needed = threshold.needed(cases);
    if cases == 0 {
        Decision::Open
    } else if passed >= needed {
        Decision::Passed
    } else if passed + inconclusive < needed {
        Decision::Failed
    } else {
        Decision::Open
    }
}

/// How a run's risk is shared out when cases stop early (Bonferroni 1936).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Risk {
    /// For each case of each gating target.
    pub case: f64,
    /// For each target's share of cases; 0 where every case must pass.
    pub suite: f64,
}

impl Risk {
    /// Every case must pass: `alpha` over all `cases` of all gating targets together.
    pub fn all_cases(alpha: f64, cases: u64) -> Risk {
        Risk { case: alpha / cases.max(1) as f64, suite: 0.0 }
    }

    /// A share of cases must pass: half of `alpha` goes to the `cases` of all gating targets
    /// together, half to the `targets`' shares.
    pub fn share_of_cases(alpha: f64, cases: u64, targets: u64) -> Risk {
        let half = 0.5 * alpha;
        Risk { case: half / cases.max(1) as f64, suite: half / targets.max(1) as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn threshold(text: &str) -> Threshold {
        text.parse().unwrap()
    }

    /// Worked by hand.
    #[test]
    fn errors_leave_both_bounds() {
        let table = [
            (2, 0, 1, "1", 2.0 / 3.0, 1.0, Decision::Open),
            (40, 9, 1, "0.8", 0.80, 0.82, Decision::Passed),
            (39, 10, 1, "0.8", 0.78, 0.80, Decision::Open),
            (1, 3, 1, "0.6", 0.2, 0.4, Decision::Failed),
        ];
        for (passed, failed, errored, share, low, high, decision) in table {
            let planned = passed + failed + errored;
            assert_eq!(rate_bounds(passed, failed, planned), Some(Interval { low, high }));
            assert_eq!(threshold(share).decide(passed, failed, planned), decision);
        }
        assert_eq!(rate_bounds(0, 0, 0), None);
    }

    #[test]
    fn one_failed_case_fails_and_one_open_case_leaves_open() {
        use Decision::{Failed, Open, Passed};
        assert_eq!(all_cases([Passed, Open, Failed, Open]), Failed);
        assert_eq!(all_cases([Passed, Open, Passed]), Open);
        assert_eq!(all_cases([Open, Passed]), Open);
        assert_eq!(all_cases([Passed, Passed]), Passed);
        assert_eq!(all_cases([]), Open);
    }

    #[test]
    fn shares_of_cases_are_exact() {
        assert_eq!(share_of_cases(threshold("0.7"), 7, 0, 10), Decision::Passed);
        assert_eq!(share_of_cases(threshold("0.7"), 6, 1, 10), Decision::Open);
        assert_eq!(share_of_cases(threshold("0.7"), 5, 1, 10), Decision::Failed);
        assert_eq!(share_of_cases(threshold("0.29"), 29, 0, 100), Decision::Passed);
        assert_eq!(share_of_cases(threshold("0"), 0, 5, 5), Decision::Passed);
        assert_eq!(share_of_cases(threshold("0"), 0, 0, 0), Decision::Open);
    }

    #[test]
    fn risk_is_shared_out_in_full() {
        assert_eq!(Risk::all_cases(0.05, 100), Risk { case: 0.0005, suite: 0.0 });
        let risk = Risk::share_of_cases(0.05, 200, 2);
        assert!((risk.case * 200.0 + risk.suite * 2.0 - 0.05).abs() < 1e-15);
        assert_eq!(risk.suite, 0.0125);
        assert_eq!(Risk::all_cases(0.05, 0).case, 0.05);
    }

    proptest! {
        /// Both bounds agree, or the case is open; and it never contradicts the judged trials.
        #[test]
        fn verdicts_are_what_both_bounds_say(hundredths in 0_u64..=100, passed in 0_u64..30, failed in 0_u64..30, errored in 0_u64..30) {
            prop_assume!(passed + failed > 0);
            let planned = passed + failed + errored;
            let threshold = threshold(&format!("{}.{:02}", hundredths / 100, hundredths % 100));
            let reaches = |passes: u64, of: u64| 100 * passes >= hundredths * of;
            let expected = match (reaches(passed, planned), reaches(passed + errored, planned)) {
                (true, _) => Decision::Passed,
                (false, true) => Decision::Open,
                (false, false) => Decision::Failed,
            };
            let decision = threshold.decide(passed, failed, planned);
            prop_assert_eq!(decision, expected);
            prop_assert_eq!(share_of_cases(threshold, passed, errored, planned), expected);
            let of_judged = reaches(passed, passed + failed);
            prop_assert!(decision == Decision::Open || (decision == Decision::Passed) == of_judged);
            let bounds = rate_bounds(passed, failed, planned).unwrap();
            prop_assert!(bounds.contains(passed as f64 / (passed + failed) as f64));
        }
    }
}
