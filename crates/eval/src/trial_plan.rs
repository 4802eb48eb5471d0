//! Number of trials and threshold of each case of a run.
//!
//! Few cases have values of their own, so only those are stored.

use crate::case_selection::CaseSelection;
use crate::config::RunConfig;
use bakeoff_core::CaseIds;
use bakeoff_stats::Threshold;
use bakeoff_suite::{OwnRule, Suite};
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of trials of a case and the share of them that must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialRule {
    /// Planned trials.
    pub trials: u32,
    /// Share of the trials that must pass.
    pub threshold: Threshold,
}

impl TrialRule {
    /// Returns the rule of a case with these values of its own.
    #[must_use]
    pub fn with(self, own: OwnRule) -> TrialRule {
        TrialRule {
            trials: own.trials.unwrap_or(self.trials),
            threshold: own.threshold.unwrap_or(self.threshold),
        }
    }
}

/// The rules of all cases of a run. Trials have consecutive numbers, case by case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPlan {
    default: TrialRule,
    cases: usize,
    /// Cases with another rule, ascending.
    own: Vec<OwnCase>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OwnCase {
    case: usize,
    rule: TrialRule,
    /// Number of the first trial after the case.
    end: usize,
}

impl TrialPlan {
    /// Creates a plan in which all cases have the same rule.
    pub fn uniform(default: TrialRule, cases: usize) -> TrialPlan {
        TrialPlan { default, cases, own: Vec::new() }
    }

    /// Replaces the rules of some cases. Indices outside the plan are ignored.
    #[must_use]
    pub fn with_own(self, own: impl IntoIterator<Item = (usize, TrialRule)>) -> TrialPlan {
        let mut plan = TrialPlan::uniform(self.default, self.cases);
        let own: BTreeMap<usize, TrialRule> = own
            .into_iter()
            .filter(|(case, rule)| *case < plan.cases && *rule != plan.default)
            .collect();
        for (case, rule) in own {
            let end = plan.range(case).start + rule.trials as usize;
            plan.own.push(OwnCase { case, rule, end });
        }
        plan
    }

    /// Returns the plan of a suite. Values of the command line replace those of the cases.
    pub(crate) fn of_suite(
        suite: &Suite,
        config: &RunConfig,
        selection: &CaseSelection,
    ) -> TrialPlan {
        let settings = &suite.settings;
        let default = TrialRule { trials: settings.trials, threshold: settings.threshold };
        let has_fixed_trials = config.has_fixed_trials();
        let has_fixed_threshold = config.has_fixed_threshold();
        let own = suite.survey.own_rules.iter().filter_map(|(index, own)| {
            let own = OwnRule {
                trials: own.trials.filter(|_| !has_fixed_trials),
                threshold: own.threshold.filter(|_| !has_fixed_threshold),
            };
            Some((selection.position(*index)?, default.with(own)))
        });
        TrialPlan::uniform(default, selection.ids.len()).with_own(own)
    }

    /// Returns the same plan with another threshold for all cases.
    #[must_use]
    pub fn with_threshold(self, threshold: Threshold) -> TrialPlan {
        self.map(|rule, _| TrialRule { threshold, ..rule })
    }

    /// Returns the same plan with the default number of trials for all cases.
    #[must_use]
    pub(crate) fn with_default_trials(self) -> TrialPlan {
        self.map(|rule, default| TrialRule { trials: default.trials, ..rule })
    }

    /// Changes all rules; `change` gets a rule and the default rule.
    fn map(self, change: impl Fn(TrialRule, TrialRule) -> TrialRule) -> TrialPlan {
        let own: Vec<_> =
            self.own().map(|(case, rule)| (case, change(rule, self.default))).collect();
        TrialPlan::uniform(change(self.default, self.default), self.cases).with_own(own)
    }

    /// Returns the rule of cases without one of their own.
    pub fn default(&self) -> TrialRule {
        self.default
    }

    /// Returns the cases with a rule of their own, ascending.
    pub fn own(&self) -> impl ExactSizeIterator<Item = (usize, TrialRule)> {
        self.own.iter().map(|own| (own.case, own.rule))
    }

    /// Returns the rule of a case.
    pub fn rule(&self, case: usize) -> TrialRule {
        let own = self.own.binary_search_by_key(&case, |own| own.case);
        own.map_or(self.default, |index| self.own[index].rule)
    }

    /// Returns the numbers of the trials of a case.
    pub fn range(&self, case: usize) -> Range<usize> {
        let index = self.own.partition_point(|own| own.case < case);
        let (next, end) = index
            .checked_sub(1)
            .map_or((0, 0), |last| (self.own[last].case + 1, self.own[last].end));
        let start = end + (case - next) * self.default.trials as usize;
        start..start + self.rule(case).trials as usize
    }

    /// Returns the numbers of the trials of each case, in order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.cases).map(|case| self.range(case))
    }

    /// Returns the number of cases.
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// Returns the number of trials of all cases.
    pub fn total(&self) -> usize {
        self.range(self.cases).start
    }

    /// Returns the largest number of trials of a case.
    pub fn max_trials(&self) -> u32 {
        let own = self.own.iter().map(|own| own.rule.trials).max();
        // The default does not count if every case has its own rule.
        let default = (self.own.len() < self.cases).then_some(self.default.trials);
        own.max(default).unwrap_or(self.default.trials)
    }

    /// Returns the first case whose rule differs between two plans, with both rules. Cases of only one of the plans are
    /// left out.
    pub fn first_difference<'a>(
        &self,
        ids: &'a CaseIds,
        other: &TrialPlan,
        other_ids: &CaseIds,
        differs: impl Fn(TrialRule, TrialRule) -> bool,
    ) -> Option<(&'a str, TrialRule, TrialRule)> {
        ids.iter().enumerate().find_map(|(case, id)| {
            let (rule, other) = (self.rule(case), other.rule(other_ids.position(id)?));
            differs(rule, other).then_some((id, rule, other))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(trials: u32, threshold: &str) -> TrialRule {
        TrialRule { trials, threshold: threshold.parse().unwrap() }
    }

    #[test]
    fn trials_have_consecutive_numbers() {
        let own = [(3, rule(1, "1")), (1, rule(5, "0.6")), (9, rule(7, "1")), (2, rule(2, "1"))];
        let plan = TrialPlan::uniform(rule(2, "1"), 5).with_own(own);
        let ranges: Vec<_> = plan.ranges().collect();
        assert_eq!(ranges, [0..2, 2..7, 7..9, 9..10, 10..12]);
        assert_eq!((plan.total(), plan.max_trials()), (12, 5));
        // A rule like the default is not stored, and one outside of the plan is ignored.
        assert_eq!(plan.own().map(|(case, _)| case).collect::<Vec<_>>(), [1, 3]);
        assert_eq!((plan.rule(1), plan.rule(2)), (rule(5, "0.6"), rule(2, "1")));
    }

    #[test]
    fn uniform_plan_needs_no_entries() {
        let plan = TrialPlan::uniform(rule(3, "1"), 4);
        assert_eq!(plan.ranges().collect::<Vec<_>>(), [0..3, 3..6, 6..9, 9..12]);
        assert_eq!((plan.total(), plan.max_trials()), (12, 3));
        assert_eq!(TrialPlan::uniform(rule(3, "1"), 0).total(), 0);
    }

    #[test]
    fn threshold_of_all_cases_can_be_replaced() {
        let plan = TrialPlan::uniform(rule(3, "1"), 2).with_own([(1, rule(5, "0.6"))]);
        let plan = plan.with_threshold("0.5".parse().unwrap());
        assert_eq!((plan.rule(0), plan.rule(1)), (rule(3, "0.5"), rule(5, "0.5")));
    }
}
