//! Comparison of two targets over the same cases.

use crate::{CaseId, Interval, NanoDollars, RunId, Score, TargetName};
use serde::{Deserialize, Serialize};

/// Result of comparing a candidate with a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Reference target.
    pub baseline: Side,
    /// Target under comparison.
    pub candidate: Side,
    /// Whether a significantly worse candidate is a regression.
    pub gate: bool,
    /// Number of cases with a judged trial in both targets. All figures below cover these cases.
    pub cases: u64,
    /// Cases of the baseline only.
    pub only_baseline: UnpairedCases,
    /// Cases of the candidate only.
    pub only_candidate: UnpairedCases,
    /// Compared metric.
    pub by: ComparisonMetric,
    /// Mean difference over the cases, candidate minus baseline.
    pub difference: f64,
    /// Interval of the difference with a confidence of 1 - `level`: all differences that the test does not
    /// reject at that level. It excludes 0 exactly if there is a finding.
    pub interval: Interval,
    /// Level of significance, adjusted for the number of comparisons made together.
    pub level: f64,
    /// Probability of a difference at least as large under the null hypothesis.
    pub p_value: f64,
    /// `p_value` adjusted for the number of comparisons made together.
    pub adjusted_p_value: f64,
    /// Name of the statistical test.
    pub test: String,
    /// Conclusion at the chosen significance level.
    pub finding: Finding,
    /// Comparison of scores; absent without graded checks, and if cases were stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<ScoreComparison>,
    /// Mean difference in standard deviations of the differences.
    pub effect: Option<f64>,
    /// Cases in which the candidate is better.
    pub gained: u64,
    /// Cases in which the candidate is worse.
    pub lost: u64,
    /// Smallest difference detectable with this number of cases at a power of 0.8.
    pub detectable: Option<f64>,
    /// Number of cases required to detect a difference of this size.
    pub needed: Option<RequiredCases>,
    /// Result of the equivalence test.
    pub equivalence: Option<Equivalence>,
    /// Cost of a trial of the candidate relative to the baseline, geometric mean over the cases; absent if a
    /// cost is unknown.
    pub cost_ratio: Option<Score>,
    /// Cost of a trial of the candidate relative to the baseline, over all cases; absent if a cost is
    /// unknown.
    pub total_cost_ratio: Option<f64>,
    /// Cases with the largest differences.
    pub changes: Vec<CaseChange>,
}

/// Comparison of the mean scores of the common cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreComparison {
    /// Mean score of the baseline.
    pub baseline: f64,
    /// Mean score of the candidate.
    pub candidate: f64,
    /// Mean difference over the cases, candidate minus baseline.
    pub difference: f64,
    /// Interval of the difference, with the meaning of [`Comparison::interval`].
    pub interval: Interval,
    /// Level of significance, adjusted for the number of comparisons of scores made together.
    pub level: f64,
    /// Probability of a difference at least as large under the null hypothesis.
    pub p_value: f64,
    /// `p_value` adjusted for the number of comparisons of scores made together.
    pub adjusted_p_value: f64,
    /// Name of the statistical test.
    pub test: String,
    /// Conclusion at the chosen significance level.
    pub finding: Finding,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Run of the target.
    pub run_id: RunId,
    /// Name of the target.
    pub target: TargetName,
    /// Mean over the common cases.
    pub mean: f64,
    /// Trials of the common cases that were run.
    pub trials: u64,
    /// Cost of these trials; absent if a price is unknown.
    pub cost_nanodollars: Option<NanoDollars>,
    /// Prompt and answer tokens of these trials; absent if unknown.
    pub tokens: Option<u64>,
    /// Median latency of all trials of the target; absent if all answers came from the cache.
    pub latency_p50_ms: Option<u64>,
}

/// Targets of a run without a counterpart in the other run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpairedTargets {
    /// Run of the targets.
    pub run_id: RunId,
    /// Names of the targets.
    pub targets: Vec<TargetName>,
}

/// Cases without a counterpart in the other target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpairedCases {
    /// Number of cases.
    pub count: u64,
    /// Ids of the first cases.
    pub first: Vec<CaseId>,
}

/// Compared metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonMetric {
    /// Pass rates of the cases.
    Rates,
    /// Verdicts of the cases, because rates of cases that were stopped early are biased.
    Verdicts,
}

/// Conclusion of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The candidate is better.
    Better,
    /// The candidate is worse.
    Worse,
    /// No significant difference; this does not show that there is none.
    NoDifference,
}

/// Number of cases required to detect a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequiredCases {
    /// Difference to detect.
    pub difference: f64,
    /// Required cases.
    pub cases: u64,
}

/// Result of an equivalence test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Equivalence {
    /// Equivalence margin.
    pub margin: f64,
    /// p value of two one-sided t tests; absent for binary cases, where the interval decides.
    pub p_value: Option<f64>,
    /// Whether the targets are equivalent within the margin.
    pub is_equivalent: bool,
}

/// A case with different results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseChange {
    /// Id of the case.
    pub case: CaseId,
    /// Rate or verdict in the baseline.
    pub baseline: f64,
    /// Rate or verdict in the candidate.
    pub candidate: f64,
}
