//! Verdicts of cases from trials, and verdicts of runs from cases.
//!
//! Errors are missing outcomes, neither passes nor failures: a verdict is final if it holds for every
//! possible outcome of the errored trials.

use crate::rate::Interval;
use crate::threshold::{Decision, Threshold};

/// Returns the share of `planned` trials that pass if all unknown outcomes fail, and if all pass.
///
/// `failed` counts known failures; outcomes of errored and skipped trials are unknown.
/// [`Threshold::decide`] passes if both ends reach the threshold, fails if neither does, and is open
/// otherwise. Absent for an empty plan.
pub fn rate_bounds(passed: u64, failed: u64, planned: u64) -> Option<Interval> {
    let failures = failed.min(planned);
    (planned > 0).then(|| Interval {
        low: passed.min(planned) as f64 / planned as f64,
        high: (planned - failures) as f64 / planned as f64,
    })
}

/// Returns the verdict of a run in which every case must pass: failed if a case failed, else open
/// (inconclusive) if a case is open, else passed. Open without cases.
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

/// Returns the verdict of a run in which a share of the `cases` must pass, by exact fractions: passed if
/// enough passed, failed if too few would pass even with all `inconclusive` ones, open otherwise. Open
/// without cases.
///
/// Cases that have not run yet are inconclusive. To stop earlier, pass the verdicts to
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

/// Division of the risk of a run among cases that stop early (Bonferroni 1936).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Risk {
    /// Risk of each case of each gating target.
    pub case: f64,
    /// Risk of each target's share of cases; 0 if every case must pass.
    pub suite: f64,
}

impl Risk {
    /// Divides `alpha` for a run in which every case must pass: equally among all `cases` of all gating
    /// targets.
    pub fn all_cases(alpha: f64, cases: u64) -> Risk {
        Risk { case: alpha / cases.max(1) as f64, suite: 0.0 }
    }

    /// Divides `alpha` for a run in which a share of cases must pass: half among the `cases` of all gating
    /// targets, half among the `targets`.
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

    /// Expected values computed by hand.
    #[test]
    fn errors_widen_the_bounds() {
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
    fn failed_case_fails_the_run_and_open_case_leaves_it_open() {
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
    fn risk_is_divided_completely() {
        assert_eq!(Risk::all_cases(0.05, 100), Risk { case: 0.0005, suite: 0.0 });
        let risk = Risk::share_of_cases(0.05, 200, 2);
        assert!((risk.case * 200.0 + risk.suite * 2.0 - 0.05).abs() < 1e-15);
        assert_eq!(risk.suite, 0.0125);
        assert_eq!(Risk::all_cases(0.05, 0).case, 0.05);
    }

    proptest! {
        /// The case is open unless both bounds agree, and its verdict never contradicts the judged trials.
        #[test]
        fn verdicts_follow_from_both_bounds(hundredths in 0_u64..=100, passed in 0_u64..30, failed in 0_u64..30, errored in 0_u64..30) {
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
