//! `[select]`: which combination of models is looked for, and how.

mod reader;

use bakeoff_core::NanoDollars;
use bakeoff_llm::Model;
use bakeoff_select::SelectorOptions;
pub(super) use reader::{Filler, Search, missing, read, target};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a search looks for, and how.
#[derive(Debug, Clone)]
pub struct SelectPlan {
    /// The target whose roles are filled, as it is named in the file.
    pub target: String,
    /// Roles and their candidates as they are written, in the order of the file.
    pub roles: Vec<(String, Vec<String>)>,
    /// What roles do.
    pub describe: BTreeMap<String, String>,
    /// The model that proposes, and how it is written.
    pub proposer: Option<(String, Model)>,
    /// How it is searched: `auto`, or a selector's name.
    pub method: String,
    /// How sure the choice must be.
    pub confidence: Option<f64>,
    /// What combinations may differ by and still be as good as each other.
    pub epsilon: Option<f64>,
    /// What makes a combination the best.
    pub objective: SelectObjective,
    /// What the search may spend.
    pub budget: SelectBudget,
    /// Options of the method, as far as numbers are written for them; what a method does not have is
    /// its business to refuse.
    pub options: SelectorOptions,
}

impl SelectPlan {
    /// The candidates of a role, if it is searched.
    pub fn candidates(&self, role: &str) -> Option<&[String]> {
        self.roles.iter().find(|(name, _)| name == role).map(|(_, names)| names.as_slice())
    }
}

/// What makes a combination the best: weights, or one of the two bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SelectObjective {
    /// What the dearest loses of its score.
    pub cost_weight: Option<f64>,
    /// What the slowest loses of its score.
    pub latency_weight: Option<f64>,
    /// The cheapest whose score is at most so much below the best.
    pub cheapest_within: Option<f64>,
    /// The best that costs at most so many dollars for a case.
    pub max_task_usd: Option<f64>,
}

/// What a search may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectBudget {
    /// Money.
    pub cost: Option<NanoDollars>,
    /// Combinations at cases.
    pub cells: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
}
