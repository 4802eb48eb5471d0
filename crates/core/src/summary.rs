//! What is said of a run when it is over; the contents of `summary.json`.

use crate::{CaseList, LimitRecord, NanoDollars, RunId, TargetName, Usage, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The run's id, which is also its folder's name.
    pub run_id: RunId,
    /// The suite's name.
    pub suite: String,
    /// The worst over the targets that gate.
    pub verdict: Verdict,
    /// One entry per target, in the suite's order.
    pub targets: Vec<TargetSummary>,
    /// Everything that depends on the clock.
    pub stats: RunStats,
}

/// One target over all its cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetSummary {
    /// The target's name.
    pub target: TargetName,
    /// Whether its verdict counts for the run.
    pub gate: bool,
    /// Passed iff every case passed, or, with a suite threshold, iff enough did.
    pub verdict: Verdict,
    /// `verdict` is *passed*.
    pub suite_pass: bool,
    /// Passed cases / cases, those that were not needed left out.
    pub suite_pass_rate: f64,
    /// How many cases there are.
    pub total_cases: u64,
    /// Cases that passed.
    pub passed: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases whose verdict depends on errored or skipped trials.
    pub inconclusive: u64,
    /// Planned trials of each case.
    pub trials_per_case: u32,
    /// Share of a case's trials that must pass.
    pub pass_threshold: f64,
    /// Planned trials over all cases.
    pub total_trials: u64,
    /// Trials that passed.
    pub pass_count: u64,
    /// Trials that were judged; the others errored or were skipped.
    pub counted: u64,
    /// Trials that errored.
    pub errors: u64,
    /// Errored trials by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Trials that were not started.
    pub skipped: u64,
    /// Those of them that an early stop made needless.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub saved: u64,
    /// Cases with a verdict although trials were left: rates made from them are biased.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped_early: u64,
    /// Cases that were not needed, because the target's verdict was certain before them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub needless: u64,
    /// Cases of which some trials passed and some failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flaky: u64,
    /// Mean of the cases' pass rates among judged trials; absent when nothing was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_pass_rate: Option<f64>,
    /// 95 % interval of the pass rate, from judged trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Mean score over the cases; absent when nothing was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// Chances of several trials together; absent with one trial and after early stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_k: Vec<PassK>,
    /// Tokens, as far as they are known.
    pub usage: Usage,
    /// Money, as far as prices are known.
    pub cost_nanodollars: NanoDollars,
    /// Money for the models that judged, as far as prices are known; not part of the above.
    #[serde(default, skip_serializing_if = "NanoDollars::is_zero")]
    pub judge_cost_nanodollars: NanoDollars,
    /// Judged trials whose price is not known.
    pub unpriced: u64,
    /// One entry per case, in the suite's order.
    pub cases: CaseList,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A mean over cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The mean.
    pub mean: f64,
    /// Its 95 % interval.
    pub interval: Interval,
}

/// What several trials of a case do together, as a mean over cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassK {
    /// How many trials.
    pub k: u32,
    /// The chance that at least one of them passes: pass@k.
    pub any: Score,
    /// The chance that all of them pass: pass^k.
    pub all: Score,
}

/// A range that holds the true rate with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Everything that depends on the clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStats {
    /// When the run started, RFC 3339.
    pub started_at: String,
    /// How long it took.
    pub elapsed_ms: u64,
    /// Calls that were made again.
    pub retries: u64,
    /// Answers that came from the cache.
    pub cached: u64,
    /// Median latency by target, cached answers left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_p50_ms: BTreeMap<TargetName, u64>,
    /// 95th percentile of latency by target, cached answers left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_p95_ms: BTreeMap<TargetName, u64>,
    /// Median and 95th percentile of latency for each case of a target, in the suite's order; kept
    /// when there is more than one trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub case_latency_ms: BTreeMap<TargetName, Vec<Option<[u32; 2]>>>,
    /// Trials that ended after an early stop had made them needless.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub surplus: u64,
    /// What they cost.
    #[serde(default, skip_serializing_if = "NanoDollars::is_zero")]
    pub surplus_cost_nanodollars: NanoDollars,
    /// How the number of requests in flight was changed, the last changes of each model. All of
    /// them are in `limits.jsonl`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connection_limit_history: Vec<LimitRecord>,
}
