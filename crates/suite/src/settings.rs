//! `[suite]`: how a run goes, and what its verdict is made by.

use super::tree::Node;
use crate::problem::Problems;
use bakeoff_core::NanoDollars;
use bakeoff_stats::Threshold;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The risk of an early stop when the suite says none.
const ALPHA: f64 = 0.05;

/// So many trials are worth a warning when the suite names no number.
const COST_WARNING: u64 = 100;

/// Settings of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Attempts of each target at each case.
    pub trials: u32,
    /// Share of a case's trials that must pass.
    pub threshold: Threshold,
    /// Most trials at once.
    pub parallel: Option<u32>,
    /// How long a program or a model call may take.
    pub timeout: Duration,
    /// When a case is stopped before its last trial.
    pub early_stop: EarlyStop,
    /// The risk that an early stop gives the run another verdict than all trials would.
    pub alpha: f64,
    /// Trials of a case that may be under way although an earlier one may make them needless.
    pub lookahead: u32,
    /// A target is given up when a larger share of its trials errors.
    pub max_error_rate: f64,
    /// What may be spent.
    pub budget: Budget,
    /// Warn when there are so many trials.
    pub cost_warning: u64,
    /// Which trials get a folder of files.
    pub artifacts: Artifacts,
    /// Whose answers are used again.
    pub cache: CacheScope,
}

/// What a run may spend. Nothing new starts once any of it is used up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Money.
    pub cost: Option<NanoDollars>,
    /// Tokens, of prompts and answers together.
    pub tokens: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
}

/// When a case is stopped before its last trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyStop {
    /// Never.
    Off,
    /// When no missing trial can change its verdict.
    Decided,
    /// When the full run would give the same verdict, with a small risk.
    Confident,
}

/// Which trials get a folder of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifacts {
    /// Every trial.
    All,
    /// Those that did not pass.
    Failures,
    /// None.
    None,
}

/// Whose answers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// This run's.
    Run,
    /// Every run's.
    Shared,
    /// Nobody's.
    None,
}

/// Reads the table; what is absent is as if it were not there.
pub(super) fn settings(node: Option<&Node<'_, '_>>, problems: &mut Problems<'_>) -> Settings {
    let number =
        |name| node.and_then(|node| node.integer(name)).and_then(|n| u32::try_from(n).ok());
    let word = |name| node.and_then(|node| node.text(name)).map(|text| text.value);
    let threshold = node.and_then(|node| node.decimal("threshold")).map(|decimal| {
        decimal.value.parse().unwrap_or_else(|_| {
            let out_of_range =
                decimal.value.parse::<f64>().is_ok_and(|n| !(0.0..=1.0).contains(&n));
            // What is out of range has been reported already.
            if !out_of_range {
                let problem =
                    problems.at(decimal.span, "`threshold` must be a plain decimal from 0 to 1");
                problem.code = Some("EVAL_INVALID_THRESHOLD");
            }
            Threshold::ALL
        })
    });
    let seconds = node.and_then(|node| node.number("timeout_seconds")).unwrap_or(600.0);
    Settings {
        trials: number("trials").unwrap_or(1),
        threshold: threshold.unwrap_or(Threshold::ALL),
        parallel: number("parallel"),
        timeout: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        early_stop: match word("early_stop") {
            Some("decided") => EarlyStop::Decided,
            Some("confident") => EarlyStop::Confident,
            _ => EarlyStop::Off,
        },
        alpha: node.and_then(|node| node.number("alpha")).unwrap_or(ALPHA),
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
            .unwrap_or(COST_WARNING),
        artifacts: match word("artifacts") {
            Some("failures") => Artifacts::Failures,
            Some("none") => Artifacts::None,
            _ => Artifacts::All,
        },
        cache: match word("cache") {
            Some("shared") => CacheScope::Shared,
            Some("none") => CacheScope::None,
            _ => CacheScope::Run,
        },
    }
}
