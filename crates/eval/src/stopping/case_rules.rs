//! The stopping rules of all cases of a run.

use super::CaseRule;
use crate::trial_plan::{TrialPlan, TrialRule};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The stopping rule of each case.
#[derive(Debug, Clone)]
pub(crate) struct CaseRules {
    plan: TrialPlan,
    default: CaseRule,
    /// Rules of the cases that have their own, ascending.
    own: Vec<(usize, Arc<CaseRule>)>,
}

impl CaseRules {
    /// Creates the rules of a plan; `create` creates the rule of a case.
    pub(crate) fn new(plan: TrialPlan, create: impl Fn(TrialRule) -> CaseRule) -> CaseRules {
        // The boundaries of a rule can be large, so equal rules share them.
        let mut shared: BTreeMap<(u32, u64), Arc<CaseRule>> = BTreeMap::new();
        let own = plan.own().map(|(case, rule)| {
            let key = (rule.trials, rule.threshold.as_f64().to_bits());
            (case, Arc::clone(shared.entry(key).or_insert_with(|| Arc::new(create(rule)))))
        });
        CaseRules { own: own.collect(), default: create(plan.default()), plan }
    }

    /// Returns the rule of a case.
    pub(crate) fn of(&self, case: usize) -> &CaseRule {
        let own = self.own.binary_search_by_key(&case, |(case, _)| *case);
        own.map_or(&self.default, |index| &self.own[index].1)
    }

    /// Returns the plan of the trials.
    pub(crate) fn plan(&self) -> &TrialPlan {
        &self.plan
    }
}
