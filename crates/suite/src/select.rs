//! Settings of `[select]`: search for the best combination of models.

mod reader;

use bakeoff_core::NanoDollars;
use bakeoff_llm::Model;
use bakeoff_select::SelectorOptions;
pub(super) use reader::{RoleCandidate, SelectSection, missing_section, read, target_name};
use std::collections::BTreeMap;
use std::time::Duration;

/// Search space, method and budget of a search.
#[derive(Debug, Clone)]
pub struct SelectPlan {
    /// Name of the target in the file whose roles are searched.
    pub target: String,
    /// Roles with the names of their candidates, in file order.
    pub roles: Vec<(String, Vec<String>)>,
    /// Descriptions of roles.
    pub describe: BTreeMap<String, String>,
    /// Name in the file and proposing model.
    pub proposer: Option<(String, Model)>,
    /// Search method: `auto`, or the name of a selector.
    pub method: String,
    /// Confidence of the choice.
    pub confidence: Option<f64>,
    /// Score difference up to which combinations count as equal.
    pub epsilon: Option<f64>,
    /// Criterion for the best combination.
    pub objective: SelectObjective,
    /// Budget of the search.
    pub budget: SelectBudget,
    /// Numeric options of the method. The method rejects options that it does not have.
    pub options: SelectorOptions,
}

impl SelectPlan {
    /// Returns the candidates of a role, if it is searched.
    pub fn candidates(&self, role: &str) -> Option<&[String]> {
        self.roles.iter().find(|(name, _)| name == role).map(|(_, names)| names.as_slice())
    }
}

/// Criterion for the best combination: weights, or one of the two bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SelectObjective {
    /// Quantity to maximise.
    pub measure: SelectMeasure,
    /// Score penalty of the most expensive trial of the first round.
    pub cost_weight: Option<f64>,
    /// Score penalty of the slowest trial of the first round.
    pub latency_weight: Option<f64>,
    /// Choose the cheapest combination whose score is at most this much below the best.
    pub cheapest_within: Option<f64>,
    /// Choose the best combination that costs at most this many dollars per case.
    pub max_task_usd: Option<f64>,
}

/// Value of a trial in a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SelectMeasure {
    /// Its score.
    #[default]
    Score,
    /// 1 if it passes, else 0.
    PassRate,
}

/// Budget of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectBudget {
    /// Cost.
    pub cost: Option<NanoDollars>,
    /// Number of trials, which are the cells of the search.
    pub cells: Option<u64>,
    /// Duration.
    pub time: Option<Duration>,
}
