//! Stopping rules: when a case needs no more trials, and a target no more cases.
//!
//! Trials count in the order of their numbers, not in the order in which they end, so that the verdict
//! depends neither on concurrency nor on interruptions.

mod case;
mod case_rules;
mod target;

pub(crate) use case::{CaseProgress, CaseRule, CaseState};
pub(crate) use case_rules::CaseRules;
pub(crate) use target::{TargetProgress, TargetRule};

use bakeoff_stats::Risk;

/// State of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TrialMark {
    /// Not finished.
    #[default]
    Missing,
    Passed,
    Failed,
    Error,
}

/// Numbers of finished trials by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TrialCounts {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) errors: u32,
}

impl TrialCounts {
    pub(crate) fn add(&mut self, mark: TrialMark) {
        match mark {
            TrialMark::Missing => {}
            TrialMark::Passed => self.passed += 1,
            TrialMark::Failed => self.failed += 1,
            TrialMark::Error => self.errors += 1,
        }
    }

    pub(crate) fn total(self) -> u32 {
        self.passed + self.failed + self.errors
    }
}

/// Splits the risk `alpha` of a run into those of each case and of each target.
pub(crate) fn risk(alpha: f64, cases: u64, targets: u64, has_share: bool) -> Risk {
    let all = cases.saturating_mul(targets);
    if has_share { Risk::share_of_cases(alpha, all, targets) } else { Risk::all_cases(alpha, all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial_plan::TrialRule;
    use bakeoff_stats::{Decision, Threshold};
    use bakeoff_suite::EarlyStop;
    use proptest::prelude::*;

    fn rule(trials: u32, threshold: &str, early: EarlyStop) -> CaseRule {
        let rule = TrialRule { trials, threshold: threshold.parse().unwrap() };
        CaseRule::new(rule, early, 0.05)
    }

    fn marks(text: &str) -> Vec<TrialMark> {
        let mark = |letter| match letter {
            'p' => TrialMark::Passed,
            'f' => TrialMark::Failed,
            'e' => TrialMark::Error,
            _ => TrialMark::Missing,
        };
        text.chars().map(mark).collect()
    }

    fn read(rule: &CaseRule, text: &str) -> (Decision, Option<u32>) {
        let state = rule.read(&marks(text));
        (state.decision, state.decided_by.map(TrialCounts::total))
    }

    #[test]
    fn without_early_stop_all_trials_count() {
        let rule = rule(5, "0.6", EarlyStop::Off);
        assert_eq!(read(&rule, "ppp.."), (Decision::Passed, None));
        assert_eq!(read(&rule, "ppfpf"), (Decision::Passed, Some(5)));
        assert_eq!(read(&rule, "ffe.f"), (Decision::Failed, None));
        assert_eq!(read(&rule, "ppeff"), (Decision::Open, Some(5)));
    }

    #[test]
    fn decided_stops_when_the_verdict_is_fixed_and_ignores_later_trials() {
        let rule = rule(5, "0.6", EarlyStop::Decided);
        assert_eq!(read(&rule, "ppp.."), (Decision::Passed, Some(3)));
        assert_eq!(read(&rule, "pppff"), (Decision::Passed, Some(3)));
        assert_eq!(read(&rule, "fpfpf"), (Decision::Failed, Some(5)));
        // The second trial is missing, so later ones do not count yet and the case continues.
        assert_eq!(read(&rule, "p.pp."), (Decision::Passed, None));
    }

    #[test]
    fn confident_stops_at_the_boundary_and_counts_errors_against_it() {
        let rule = rule(10, "0.7", EarlyStop::Confident);
        assert_eq!(read(&rule, "pppppp...."), (Decision::Passed, Some(6)));
        assert_eq!(read(&rule, "ppppp....."), (Decision::Open, None));
        assert_eq!(read(&rule, "epppppp..."), (Decision::Open, None));
        assert_eq!(read(&rule, "eppppppp.."), (Decision::Passed, Some(8)));
        assert_eq!(read(&rule, "fff......."), (Decision::Failed, Some(3)));
    }

    #[test]
    fn startable_trials_are_those_that_certainly_count() {
        let startable = |rule: &CaseRule, text: &str, lookahead| {
            let mut progress = CaseProgress::default();
            progress.advance(rule, &marks(text));
            progress.startable(rule, lookahead)
        };
        assert_eq!(startable(&rule(9, "0.5", EarlyStop::Off), ".........", 1), 9);
        let decided = rule(5, "0.6", EarlyStop::Decided);
        assert_eq!(startable(&decided, ".....", 1), 3, "three passes decide, and three failures");
        assert_eq!(startable(&decided, "pp...", 1), 3);
        assert_eq!(startable(&decided, "pf...", 1), 4);
        assert_eq!(startable(&decided, "pp...", 2), 4, "lookahead allows more");
        assert_eq!(startable(&decided, "ppp..", 1), 0);
        let confident = rule(50, "0.7", EarlyStop::Confident);
        assert_eq!(startable(&confident, &".".repeat(50), 1), 4, "four failures suffice");
        assert_eq!(startable(&rule(3, "0", EarlyStop::Decided), "...", 1), 1);
    }

    #[test]
    fn share_of_cases_is_decided_in_random_order() {
        let threshold: Threshold = "0.8".parse().unwrap();
        let rule = TargetRule::new(threshold).confident(50, 0.05, 7);
        let order = rule.order().unwrap().to_vec();
        let decided_by = Some(TrialCounts::default());
        let mut cases = vec![CaseState { decision: Decision::Open, decided_by: None }; 50];
        for case in &order[..14] {
            cases[*case as usize] = CaseState { decision: Decision::Passed, decided_by };
        }
        assert_eq!(rule.read(&cases).decision, Decision::Open);
        // A case later in the order does not count before those in between.
        cases[order[40] as usize] = CaseState { decision: Decision::Passed, decided_by };
        assert_eq!(rule.read(&cases).decision, Decision::Open);
        cases[order[14] as usize] = CaseState { decision: Decision::Passed, decided_by };
        let state = rule.read(&cases);
        assert_eq!(state.decision, Decision::Passed, "15 of 15 suffice");
        assert_eq!(state.unneeded, &order[15..]);
        assert_ne!(TargetRule::new(threshold).confident(50, 0.05, 8).order().unwrap(), order);
    }

    proptest! {
        /// All trials that may start while others run are counted in the end.
        #[test]
        fn every_started_trial_counts(
            outcomes in proptest::collection::vec(0_u8..8, 1..40),
            tenths in 0_u64..=10,
            confident in any::<bool>(),
        ) {
            let early = if confident { EarlyStop::Confident } else { EarlyStop::Decided };
            let threshold = format!("{}.{}", tenths / 10, tenths % 10);
            let rule = rule(outcomes.len() as u32, &threshold, early);
            let outcome = |number: usize| match outcomes[number] {
                0 => TrialMark::Error,
                1..4 => TrialMark::Failed,
                _ => TrialMark::Passed,
            };
            let mut marks = vec![TrialMark::Missing; outcomes.len()];
            let mut progress = CaseProgress::default();
            loop {
                let until = progress.startable(&rule, 1) as usize;
                if until == 0 {
                    break;
                }
                for (number, mark) in marks.iter_mut().enumerate().take(until) {
                    *mark = outcome(number);
                }
                progress.advance(&rule, &marks);
            }
            let started = marks.iter().filter(|mark| **mark != TrialMark::Missing).count() as u32;
            prop_assert_eq!(rule.read(&marks).decided_by.map(TrialCounts::total), Some(started));
        }

        /// `decided` gives the verdict of the full run, with and without errors.
        #[test]
        fn decided_never_changes_a_verdict(
            outcomes in proptest::collection::vec(0_u8..8, 1..60),
            hundredths in 0_u64..=100,
        ) {
            let all: Vec<TrialMark> = outcomes
                .iter()
                .map(|outcome| match outcome {
                    0 => TrialMark::Error,
                    1..4 => TrialMark::Failed,
                    _ => TrialMark::Passed,
                })
                .collect();
            let threshold = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            let decided = rule(outcomes.len() as u32, &threshold, EarlyStop::Decided);
            let full = rule(outcomes.len() as u32, &threshold, EarlyStop::Off);
            prop_assert_eq!(decided.read(&all).decision, full.read(&all).decision);
        }
    }
}
