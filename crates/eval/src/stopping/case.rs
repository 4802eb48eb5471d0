//! Stopping rule of a case.

use super::{TrialCounts, TrialMark};
use crate::trial_plan::TrialRule;
use bakeoff_stats::{Boundaries, Decision, Threshold};
use bakeoff_suite::EarlyStop;

/// Decides about a case.
#[derive(Debug, Clone)]
pub(crate) struct CaseRule {
    trials: u32,
    threshold: Threshold,
    early: CaseStop,
}

#[derive(Debug, Clone)]
enum CaseStop {
    Off,
    Decided,
    Confident(Boundaries),
}

/// Decision about a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CaseState {
    pub(crate) decision: Decision,
    /// The first trials, on which the decision rests; later trials do not count. Absent while more trials
    /// are needed; then all trials count.
    pub(crate) decided_by: Option<TrialCounts>,
}

impl CaseRule {
    /// Creates a rule; `alpha` is the risk of one case.
    pub(crate) fn new(rule: TrialRule, early: EarlyStop, alpha: f64) -> CaseRule {
        let TrialRule { trials, threshold } = rule;
        let early = match early {
            EarlyStop::Off => CaseStop::Off,
            EarlyStop::Decided => CaseStop::Decided,
            EarlyStop::Confident => {
                CaseStop::Confident(Boundaries::new(threshold, trials.into(), alpha))
            }
        };
        CaseRule { trials, threshold, early }
    }

    /// Returns the decision of the first trials, and whether they are enough.
    fn decide(&self, first: TrialCounts) -> (Decision, bool) {
        let TrialCounts { passed, failed, errors } = first;
        let (passed, failed, errors) = (passed.into(), failed.into(), errors.into());
        let decided = self.threshold.decide(passed, failed, self.trials.into());
        let (decision, may_stop) = match &self.early {
            CaseStop::Off => (decided, false),
            CaseStop::Decided => (decided, true),
            CaseStop::Confident(boundaries) => match boundaries.decide(passed, failed, errors) {
                Decision::Open => (decided, true),
                claim => (claim, true),
            },
        };
        let is_decided = first.total() >= self.trials || (may_stop && decision != Decision::Open);
        (decision, is_decided)
    }

    /// Returns the number of further trials that are needed whatever their results.
    fn certainly_needed(&self, first: TrialCounts) -> u32 {
        let TrialCounts { passed, failed, errors } = first;
        let left = self.trials - first.total();
        let min = match &self.early {
            CaseStop::Off => return left,
            CaseStop::Decided => {
                let needed = self.threshold.needed(self.trials.into()) as u32;
                let to_pass = needed.saturating_sub(passed);
                let to_fail = (self.trials - needed + 1).saturating_sub(failed);
                to_pass.min(to_fail)
            }
            CaseStop::Confident(boundaries) => {
                let missing = |boundary: &[u64], others: u32, so_far: u32| {
                    let required = boundary.get(others as usize).copied();
                    required.map_or(left, |required| (required as u32).saturating_sub(so_far))
                };
                let to_pass = missing(boundaries.passes(), failed + errors, passed);
                let to_fail = missing(boundaries.failures(), passed + errors, failed);
                to_pass.min(to_fail)
            }
        };
        // No decision is made without a trial.
        min.max(1).min(left)
    }

    /// Returns the decision about a case with these trials.
    pub(crate) fn read(&self, trials: &[TrialMark]) -> CaseState {
        let mut progress = CaseProgress::default();
        progress.advance(self, trials);
        if progress.is_decided {
            return CaseState { decision: progress.decision, decided_by: Some(progress.first) };
        }
        let mut all = TrialCounts::default();
        trials.iter().for_each(|mark| all.add(*mark));
        let TrialCounts { passed, failed, .. } = all;
        let decision = self.threshold.decide(passed.into(), failed.into(), self.trials.into());
        CaseState { decision, decided_by: None }
    }
}

/// Progress of a case: its trials before the first missing one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaseProgress {
    first: TrialCounts,
    pub(crate) decision: Decision,
    pub(crate) is_decided: bool,
}

impl Default for CaseProgress {
    fn default() -> CaseProgress {
        CaseProgress { first: TrialCounts::default(), decision: Decision::Open, is_decided: false }
    }
}

impl CaseProgress {
    /// Adds the trials that are no longer missing.
    pub(crate) fn advance(&mut self, rule: &CaseRule, trials: &[TrialMark]) {
        while !self.is_decided
            && let Some(mark) = trials.get(self.first.total() as usize)
            && *mark != TrialMark::Missing
        {
            self.first.add(*mark);
            (self.decision, self.is_decided) = rule.decide(self.first);
        }
    }

    /// Returns the number of trials of the case, from the first, that may be started by now.
    pub(crate) fn startable(&self, rule: &CaseRule, lookahead: u32) -> u32 {
        if self.is_decided {
            return 0;
        }
        let ahead = rule.certainly_needed(self.first).max(lookahead);
        self.first.total().saturating_add(ahead).min(rule.trials)
    }
}
