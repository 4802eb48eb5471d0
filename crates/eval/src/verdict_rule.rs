//! The rule of a verdict as text, with the figures that decided it.

use crate::aggregate::RunCriteria;
use crate::trial_plan::{TrialPlan, TrialRule};
use bakeoff_core::{TargetSummary, Verdict};
use bakeoff_stats::Threshold;

/// Numbers of cases of a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaseNumbers {
    pub(crate) passed: u64,
    /// Cases without a verdict.
    pub(crate) inconclusive: u64,
    /// Cases that were needed for the verdict.
    pub(crate) needed: u64,
    /// Cases without a verdict that could not change that of the target.
    pub(crate) needless: u64,
    /// Verdict over the cases alone.
    pub(crate) verdict: Verdict,
}

/// Mean score of a target and the verdict over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoreRule {
    pub(crate) mean: Option<f64>,
    pub(crate) min: f64,
    pub(crate) verdict: Verdict,
}

/// Describes the rule of a target.
pub(crate) fn describe_target(
    criteria: &RunCriteria,
    cases: CaseNumbers,
    score: Option<ScoreRule>,
) -> String {
    let mut rule = describe_cases(criteria, cases);
    rule.push_str(&describe_trials(&criteria.plan));
    if let Some(ScoreRule { mean, min, verdict }) = score {
        let mean = mean.map_or_else(|| "unknown".to_owned(), |mean| format!("{mean:.3}"));
        let relation = match verdict {
            Verdict::Passed => format!("≥ {min}"),
            Verdict::Failed => format!("< {min}"),
            Verdict::Inconclusive => format!("of the trials that ran, needs {min}"),
        };
        rule.push_str(&format!("; mean score {mean} {relation}"));
    }
    rule
}

/// Describes when a case passes, unless all have one trial.
fn describe_trials(plan: &TrialPlan) -> String {
    let TrialRule { trials, threshold } = plan.default();
    let default =
        format!("a case passes with {} of {trials} trials", threshold.needed(trials.into()));
    match (trials, plan.own().len()) {
        (1, 0) => String::new(),
        (_, 0) => format!(" ({default})"),
        (_, 1) => format!(" ({default}, but 1 has its own rule)"),
        (_, own) => format!(" ({default}, but {own} have their own rule)"),
    }
}

fn describe_cases(criteria: &RunCriteria, cases: CaseNumbers) -> String {
    let CaseNumbers { passed, inconclusive, needed, needless, verdict } = cases;
    let noun = if needed == 1 { "case" } else { "cases" };
    let open = describe_open(inconclusive, needed, needless);
    let Some(share) = criteria.suite_threshold else {
        let verb = if needed == 1 { "passes" } else { "pass" };
        return format!("{passed} of {needed} {noun} {verb}{open}, needs {needed}");
    };
    let percent = percent(share);
    // `--ci` alone replaces the rule that every case must pass.
    let origin = if criteria.is_ci_rule { " (rule of --ci)" } else { "" };
    match verdict {
        Verdict::Passed => format!("{passed} of {needed} {noun} ≥ {percent}{open}{origin}"),
        Verdict::Failed => format!("{passed} of {needed} {noun} < {percent}{open}{origin}"),
        Verdict::Inconclusive => {
            format!("{passed} of {needed} {noun} pass{open}, needs {percent}{origin}")
        }
    }
}

/// Describes the cases without a verdict.
fn describe_open(inconclusive: u64, needed: u64, needless: u64) -> String {
    let mut open = match inconclusive {
        0 => String::new(),
        count => format!(", {count} without a verdict"),
    };
    if needless > 0 {
        open.push_str(&format!(", {needless} of {} not needed", needed + needless));
    }
    open
}

/// Formats an exact share; repeating decimals are cut.
fn percent(share: Threshold) -> String {
    let text = format!("{:.3}", share.as_f64() * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Describes the verdict of a run: the rules of the gating targets with that verdict.
pub(crate) fn describe_run(targets: &[TargetSummary], verdict: Verdict) -> String {
    let gating = targets.iter().filter(|target| target.gate);
    let is_single = gating.clone().count() == 1;
    let describe = |target: &TargetSummary| match is_single {
        true => target.rule.clone(),
        false => format!("{}: {}", target.target, target.rule),
    };
    gating.filter(|target| target.verdict == verdict).map(describe).collect::<Vec<_>>().join("; ")
}

/// Returns the verdict over a mean score of which the bounds are known.
pub(crate) fn score_verdict(lowest: f64, highest: f64, min: f64) -> Verdict {
    // Scores are stored in millionths.
    const TOLERANCE: f64 = 1e-6;
    if lowest + TOLERANCE >= min {
        Verdict::Passed
    } else if highest + TOLERANCE < min {
        Verdict::Failed
    } else {
        Verdict::Inconclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_without_a_verdict_are_stated() {
        assert_eq!(describe_open(0, 8, 0), "");
        assert_eq!(describe_open(2, 8, 0), ", 2 without a verdict");
        assert_eq!(describe_open(0, 8, 4), ", 4 of 12 not needed");
    }
}
