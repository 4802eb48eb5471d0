//! Summary of a finished run; the contents of `summary.json`.

use crate::{CaseList, LimitRecord, NanoDollars, PoolSummary, RunId, TargetName, Usage, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Id of the run, which is also the name of its folder.
    pub run_id: RunId,
    /// The suite's name.
    pub suite: String,
    /// Worst verdict of the targets that gate.
    pub verdict: Verdict,
    /// Rules of the gating targets that decided the verdict, such as "5 of 8 cases pass, needs 8".
    #[serde(default)]
    pub rule: String,
    /// One entry per target, in the suite's order.
    pub targets: Vec<TargetSummary>,
    /// Figures that depend on the clock.
    pub stats: RunStats,
}

/// Summary of one target over all cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetSummary {
    /// The target's name.
    pub target: TargetName,
    /// Whether the verdict counts for the run.
    pub gate: bool,
    /// Passed if every case passed or, with a suite threshold, if enough cases passed; with a minimum score,
    /// only if the mean score reaches it.
    pub verdict: Verdict,
    /// Rule of the verdict with its figures, such as "5 of 8 cases pass, needs 8".
    #[serde(default)]
    pub rule: String,
    /// Whether `verdict` is *passed*.
    pub suite_pass: bool,
    /// Passed cases / needed cases.
    pub suite_pass_rate: f64,
    /// Number of cases.
    pub total_cases: u64,
    /// Cases that passed.
    pub passed: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases whose verdict depends on errored or skipped trials.
    pub inconclusive: u64,
    /// Planned trials of each case without its own number.
    pub trials_per_case: u32,
    /// Share of trials that must pass in each case without its own threshold.
    pub pass_threshold: f64,
    /// Planned trials of all cases.
    pub total_trials: u64,
    /// Trials that passed.
    pub pass_count: u64,
    /// Judged trials; the others errored or were skipped.
    pub counted: u64,
    /// Trials that errored.
    pub errors: u64,
    /// Errored trials by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Trials that did not start.
    pub skipped: u64,
    /// Skipped trials that an early stop made unnecessary.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub saved: u64,
    /// Cases with a verdict before all trials were run; rates that include them are biased.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped_early: u64,
    /// Cases that were unnecessary because the target's verdict was certain before them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub needless: u64,
    /// Cases with passed and failed trials.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flaky: u64,
    /// Mean pass rate of the cases over judged trials; absent without judged trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_pass_rate: Option<f64>,
    /// 95 % interval of the pass rate, from judged trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Whether a check is graded, so that the score says more than the pass rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub graded: bool,
    /// Lowest mean score with which the target passes, if one is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// Mean score over the cases; absent without judged trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// pass@k and pass^k; absent with one trial and after early stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_k: Vec<PassK>,
    /// Tokens, as far as known.
    pub usage: Usage,
    /// Cost, as far as known; absent if nothing is known.
    #[serde(default)]
    pub cost_nanodollars: Option<NanoDollars>,
    /// Cost of judge models, as far as prices are known; not part of `cost_nanodollars`.
    #[serde(default, skip_serializing_if = "NanoDollars::is_zero")]
    pub judge_cost_nanodollars: NanoDollars,
    /// Judged trials without a known price.
    pub unpriced: u64,
    /// One entry per case, in the suite's order.
    pub cases: CaseList,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Mean over cases with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Mean.
    pub mean: f64,
    /// 95 % interval of the mean.
    pub interval: Interval,
}

/// Pass probabilities of k trials, as means over cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassK {
    /// Number of trials.
    pub k: u32,
    /// Probability that at least one trial passes: pass@k.
    pub any: Score,
    /// Probability that all trials pass: pass^k.
    pub all: Score,
}

/// 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Figures of a run that depend on the clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStats {
    /// Start of the run, RFC 3339.
    pub started_at: String,
    /// Duration of the run.
    pub elapsed_ms: u64,
    /// Whether a signal ended the run before all trials had a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Retried calls.
    pub retries: u64,
    /// Answers from the cache.
    pub cached: u64,
    /// Median latency by target, without cached answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_p50_ms: BTreeMap<TargetName, u64>,
    /// 95th percentile of latency by target, without cached answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_p95_ms: BTreeMap<TargetName, u64>,
    /// Median and 95th percentile of latency for each case of a target, in the suite's order; recorded
    /// with more than one trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub case_latency_ms: BTreeMap<TargetName, Vec<Option<[u32; 2]>>>,
    /// Trials that finished after an early stop had made them unnecessary.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub surplus: u64,
    /// Cost of the surplus trials.
    #[serde(default, skip_serializing_if = "NanoDollars::is_zero")]
    pub surplus_cost_nanodollars: NanoDollars,
    /// Last changes of each model's concurrency limit; `limits.jsonl` has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connection_limit_history: Vec<LimitRecord>,
    /// Calls to each model, and the limits that were found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolSummary>,
}
