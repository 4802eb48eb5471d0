//! What is said of two targets over the same cases.

use crate::{CaseId, Interval, RunId, Score, TargetName};
use serde::{Deserialize, Serialize};

/// One target against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared with.
    pub baseline: Side,
    /// What is compared.
    pub candidate: Side,
    /// Cases with a judged trial in both; everything below is about them.
    pub cases: u64,
    /// How many cases only the baseline has, and the first of them.
    pub only_baseline: Unpaired,
    /// How many cases only the candidate has, and the first of them.
    pub only_candidate: Unpaired,
    /// What was compared.
    pub by: ComparedBy,
    /// Mean difference over the cases, candidate minus baseline.
    pub difference: f64,
    /// 95 % interval of the difference; absent when there are too few cases for one.
    pub interval: Option<Interval>,
    /// How likely a difference as large is when there is none.
    pub p_value: f64,
    /// The same, adjusted for the number of comparisons made together.
    pub adjusted_p_value: f64,
    /// Which test says so.
    pub test: String,
    /// What can be said at the chosen level.
    pub finding: Finding,
    /// Mean difference in standard deviations of the differences.
    pub effect: Option<f64>,
    /// Cases in which the candidate is better.
    pub gained: u64,
    /// Cases in which the candidate is worse.
    pub lost: u64,
    /// The smallest difference that so many cases would show with power 0.8.
    pub detectable: Option<f64>,
    /// How many cases a difference of this size would need.
    pub needed: Option<Needed>,
    /// Whether the two are equal within a margin.
    pub equivalence: Option<Equivalence>,
    /// Cost of the candidate as a multiple of the baseline's, mean over the cases.
    pub cost_ratio: Option<Score>,
    /// Cost of all cases of the candidate as a multiple of the baseline's.
    pub total_cost_ratio: Option<f64>,
    /// The cases that differ most.
    pub changes: Vec<CaseChange>,
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Its run.
    pub run_id: RunId,
    /// Its target.
    pub target: TargetName,
    /// Mean over the cases that both have.
    pub mean: f64,
}

/// Cases that the other has not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpaired {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<CaseId>,
}

/// What was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedBy {
    /// Pass rates of the cases.
    Rates,
    /// Verdicts of the cases: rates of cases that were stopped early are biased.
    Verdicts,
}

/// What can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The candidate is better.
    Better,
    /// The candidate is worse.
    Worse,
    /// No difference was found, which is not the same as none.
    NoDifference,
}

/// How many cases a difference needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Needed {
    /// The difference.
    pub difference: f64,
    /// The cases.
    pub cases: u64,
}

/// Whether two are equal within a margin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Equivalence {
    /// The margin.
    pub margin: f64,
    /// Of two one-sided t tests; absent for cases that only pass or fail, where the interval decides.
    pub p_value: Option<f64>,
    /// Whether it says so.
    pub is_equivalent: bool,
}

/// A case that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseChange {
    /// Which one.
    pub case: CaseId,
    /// Its rate or verdict in the baseline.
    pub baseline: f64,
    /// In the candidate.
    pub candidate: f64,
}
