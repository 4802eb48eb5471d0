//! Settings of a search from `[select]` and the command line. Makes no call.

use super::prices::prices_per_call;
use crate::Error;
use crate::run::Run;
use bakeoff_core::NanoDollars;
use bakeoff_select::{Hints, Objective, OptionsError, Role, SearchBudget, SelectorOptions, Space};
use bakeoff_suite::SelectPlan;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of the command line that replace those of `[select]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SearchOverrides {
    /// Name of the search method.
    pub method: Option<String>,
    /// Confidence in the winner.
    pub confidence: Option<f64>,
    /// Maximum cost of the search.
    pub max_cost: Option<NanoDollars>,
    /// Maximum number of cells.
    pub max_cells: Option<u64>,
    /// Maximum duration of the search.
    pub deadline: Option<Duration>,
    /// Maximum number of concurrent cells.
    pub parallel: Option<u32>,
    /// File for the winner. The search itself does not write it.
    pub apply: Option<PathBuf>,
}

/// Methods that stop at a confidence.
const CONFIDENT_METHODS: [&str; 2] = ["auto", "strict"];

impl SearchOverrides {
    /// Takes the settings that are left out here from those of an earlier command.
    pub fn fill(&mut self, earlier: &SearchOverrides) {
        let SearchOverrides { method, confidence, max_cost, max_cells, deadline, parallel, apply } =
            earlier;
        // A confidence belongs to the methods that have one. Without a method, it is that of the earlier command.
        let has_confidence = |name: &String| CONFIDENT_METHODS.contains(&name.as_str());
        if self.method == *method || self.method.as_ref().is_none_or(has_confidence) {
            self.confidence = self.confidence.or(*confidence);
        }
        self.method = self.method.take().or_else(|| method.clone());
        self.max_cost = self.max_cost.or(*max_cost);
        self.max_cells = self.max_cells.or(*max_cells);
        self.deadline = self.deadline.or(*deadline);
        self.parallel = self.parallel.or(*parallel);
        self.apply = self.apply.take().or_else(|| apply.clone());
    }
}

/// Returns a usage error; an empty hint is left out.
pub(super) fn usage(message: String, hint: &str) -> Error {
    Error::usage(message, (!hint.is_empty()).then(|| hint.to_owned()))
}

/// Converts an error of selector options.
pub(super) fn options_error(error: &OptionsError) -> Error {
    let hint = match error {
        OptionsError::Unknown { .. } => "name one of them with `method` under [select] or --method",
        OptionsError::Unused { .. } => {
            "remove the option from [select], or choose another `method`"
        }
        _ => "change it under [select] or on the command line",
    };
    usage(error.to_string(), hint)
}

/// Returns the space of combinations and datapoints.
pub(super) fn space(plan: &SelectPlan, cases: usize, trials: usize) -> Result<Space, Error> {
    let roles = plan
        .roles
        .iter()
        .map(|(name, candidates)| Role { name: name.clone(), candidates: candidates.clone() });
    Space::full(roles.collect(), cases * trials)
        .map(|space| space.with_cases(cases))
        .map_err(|error| usage(error.to_string(), "candidates are listed under [select.roles]"))
}

pub(super) fn objective(plan: &SelectPlan) -> Objective {
    Objective {
        cost_weight: plan.objective.cost_weight.unwrap_or(0.0),
        latency_weight: plan.objective.latency_weight.unwrap_or(0.0),
        max_cost: plan.objective.max_task_usd.and_then(NanoDollars::from_dollars),
    }
}

/// Returns the budget: the command line precedes `[select]`, which precedes `[suite]`.
pub(super) fn budget(run: &Run, plan: &SelectPlan, overrides: &SearchOverrides) -> SearchBudget {
    let suite = &run.suite.settings.budget;
    let cost = overrides.max_cost.or(plan.budget.cost).or(suite.cost);
    SearchBudget {
        cost,
        cells: overrides.max_cells.or(plan.budget.cells).map(|cells| cells as usize),
        time: overrides.deadline.or(plan.budget.time).or(suite.time),
    }
}

pub(super) fn options(
    run: &Run,
    plan: &SelectPlan,
    method: &str,
    overrides: &SearchOverrides,
    objective: Objective,
) -> SelectorOptions {
    let hints =
        (method == "hill_climbing").then(|| Hints::from_prices(prices_per_call(&run.suite)));
    let mut options = plan.options.clone();
    options.seed = run.config.seed;
    options.objective = objective;
    options.within = plan.objective.cheapest_within;
    options.confidence = plan.confidence;
    options.epsilon = plan.epsilon;
    options.hints = hints;
    // Options of the suite belong to its own method. Those of the command line always apply.
    let mut options = if method == plan.method { options } else { options.only_of(method) };
    options.confidence = overrides.confidence.or(options.confidence);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_kept_by_methods_that_have_one() {
        let overrides = |method: Option<&str>, confidence: Option<f64>| SearchOverrides {
            method: method.map(str::to_owned),
            confidence,
            ..SearchOverrides::default()
        };
        for (now, earlier, expected) in [
            (None, None, Some(0.99)),
            (Some("auto"), None, Some(0.99)),
            (Some("strict"), Some("auto"), Some(0.99)),
            (None, Some("strict"), Some(0.99)),
            (Some("brute_force"), Some("auto"), None),
        ] {
            let mut resumed = overrides(now, None);
            resumed.fill(&overrides(earlier, Some(0.99)));
            assert_eq!(resumed.confidence, expected, "{now:?} after {earlier:?}");
        }
        let mut named = overrides(None, Some(0.8));
        named.fill(&overrides(None, Some(0.99)));
        assert_eq!(named.confidence, Some(0.8));
    }
}
