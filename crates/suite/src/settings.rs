//! Reading of `[suite]`: settings of a run and of its verdict.

use super::spec::choice;
use super::tree::Node;
use crate::problem::Problems;
use bakeoff_core::NanoDollars;
use bakeoff_stats::Threshold;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Default risk of an early stop.
const DEFAULT_ALPHA: f64 = 0.05;

/// Default number of trials from which a run starts with a warning.
const DEFAULT_COST_WARNING: u64 = 100;

/// Settings of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Number of trials of each target on each case.
    pub trials: u32,
    /// Share of a case's trials that must pass.
    pub threshold: Threshold,
    /// Lowest mean score with which a target passes.
    pub min_score: Option<f64>,
    /// Maximum number of concurrent trials.
    pub parallel: Option<u32>,
    /// Time limit of a program or a model call.
    pub timeout: Duration,
    /// When to stop a case before its last trial.
    pub early_stop: EarlyStop,
    /// Risk that an early stop gives the run another verdict than all trials would.
    pub alpha: f64,
    /// Maximum number of concurrent trials of a case that an earlier trial may make unnecessary.
    pub lookahead: u32,
    /// Maximum share of planned trials with errors before the target is stopped.
    pub max_error_rate: f64,
    /// Budget of the run.
    pub budget: Budget,
    /// Number of trials from which a run starts with a warning.
    pub cost_warning: u64,
    /// Trials that get a folder with artifacts.
    pub artifacts: Artifacts,
    /// Scope of the response cache.
    pub cache: CacheScope,
}

/// Budget of a run: no call starts that could exceed its cost or tokens, and no trial after its time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Cost.
    pub cost: Option<NanoDollars>,
    /// Prompt and completion tokens.
    pub tokens: Option<u64>,
    /// Duration.
    pub time: Option<Duration>,
}

/// Condition to stop a case before its last trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyStop {
    /// Never.
    Off,
    /// When no remaining trial can change its verdict.
    Decided,
    /// When the full run would give the same verdict, with a small risk of error.
    Confident,
}

/// Trials that get a folder with artifacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifacts {
    /// All trials.
    All,
    /// Trials that did not pass.
    Failures,
    /// No trial.
    None,
}

/// Scope of the response cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// This run, when it is resumed.
    Run,
    /// All runs.
    Shared,
    /// No cache.
    None,
}

/// Words of `early_stop` with their values.
pub(crate) const EARLY_STOP_CHOICES: [(&str, EarlyStop); 3] =
    [("off", EarlyStop::Off), ("decided", EarlyStop::Decided), ("confident", EarlyStop::Confident)];

/// Words of `artifacts` with their values.
pub(crate) const ARTIFACT_CHOICES: [(&str, Artifacts); 3] =
    [("all", Artifacts::All), ("failures", Artifacts::Failures), ("none", Artifacts::None)];

/// Words of `cache` with their values.
pub(crate) const CACHE_CHOICES: [(&str, CacheScope); 3] =
    [("run", CacheScope::Run), ("shared", CacheScope::Shared), ("none", CacheScope::None)];

/// Reads the table; absent keys have their defaults.
pub(super) fn read(node: Option<&Node<'_, '_>>, problems: &mut Problems<'_>) -> Settings {
    let number =
        |name| node.and_then(|node| node.integer(name)).and_then(|n| u32::try_from(n).ok());
    let word = |name| node.and_then(|node| node.text(name)).map(|text| text.value);
    let threshold = node.and_then(|node| node.decimal("threshold")).map(|decimal| {
        decimal.value.parse().unwrap_or_else(|_| {
            let out_of_range =
                decimal.value.parse::<f64>().is_ok_and(|n| !(0.0..=1.0).contains(&n));
            // The validation has reported values out of range.
            if !out_of_range {
                let problem =
                    problems.at(decimal.span, "`threshold` must be a plain decimal from 0 to 1");
                problem.code = Some("EVAL_INVALID_THRESHOLD");
            }
            Threshold::ALL
        })
    });
    let seconds = node.and_then(|node| node.number("timeout_seconds")).unwrap_or(600.0);
    let early_stop = word("early_stop").and_then(|word| choice(&EARLY_STOP_CHOICES, word));
    if let Some(node) = node
        && let (Some(value), Some(EarlyStop::Decided | EarlyStop::Confident)) =
            (node.get("min_score"), early_stop)
    {
        problems
            .at(value.span(), "`min_score` needs all trials, but `early_stop` omits some")
            .with_hint(
                "remove `early_stop`, or require a score of each trial with `min_score` of a check",
            );
    }
    Settings {
        trials: number("trials").unwrap_or(1),
        threshold: threshold.unwrap_or(Threshold::ALL),
        min_score: node.and_then(|node| node.number("min_score")),
        parallel: number("parallel"),
        timeout: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        early_stop: early_stop.unwrap_or(EarlyStop::Off),
        alpha: node.and_then(|node| node.number("alpha")).unwrap_or(DEFAULT_ALPHA),
        lookahead: number("lookahead").unwrap_or(1),
        max_error_rate: node.and_then(|node| node.number("max_error_rate")).unwrap_or(0.1),
        budget: Budget {
            cost: node
                .and_then(|node| node.number("max_cost_usd"))
                .map(|dollars| NanoDollars((dollars * 1e9).round() as i64)),
            tokens: node
                .and_then(|node| node.integer("max_tokens"))
                .and_then(|tokens| u64::try_from(tokens).ok()),
            time: node
                .and_then(|node| node.number("deadline"))
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        },
        cost_warning: node
            .and_then(|node| node.integer("cost_warning"))
            .and_then(|trials| u64::try_from(trials).ok())
            .unwrap_or(DEFAULT_COST_WARNING),
        artifacts: word("artifacts")
            .and_then(|word| choice(&ARTIFACT_CHOICES, word))
            .unwrap_or(Artifacts::All),
        cache: word("cache")
            .and_then(|word| choice(&CACHE_CHOICES, word))
            .unwrap_or(CacheScope::Run),
    }
}
