//! From trial results to a summary. Reads [`TrialResult`]s and nothing else, in any order.

use crate::lane::Turn;
use crate::stopping::{self, CaseRule, Mark, TargetRule};
use crate::tally::Sheet;
use bakeoff_core::{
    CaseIds, ErrorKind, NanoDollars, RunId, RunStats, SCHEMA_VERSION, Status, Summary, TargetName,
    TrialKey, TrialResult, Usage, Verdict,
};
use bakeoff_stats::Threshold;
use bakeoff_suite::EarlyStop;
use std::sync::Arc;

/// What a run is measured by.
#[derive(Debug, Clone)]
pub struct Measure {
    /// Name and gate of each target.
    pub targets: Vec<(TargetName, bool)>,
    /// Ids of the cases, in the suite's order.
    pub cases: Arc<CaseIds>,
    /// Planned trials of each case.
    pub trials: u32,
    /// Share of a case's trials that must pass.
    pub threshold: Threshold,
    /// Share of a target's cases that must pass; all when absent.
    pub suite_threshold: Option<Threshold>,
    /// When a case is stopped before its last trial.
    pub early_stop: EarlyStop,
    /// The risk that `confident` gives the run another verdict than all trials would.
    pub alpha: f64,
    /// The seed of the order in which cases come where a share of them may be enough.
    pub seed: u64,
}

impl Measure {
    /// What decides about a case.
    pub(crate) fn case_rule(&self) -> CaseRule {
        CaseRule::new(self.trials, self.threshold, self.early_stop, self.risk().case)
    }

    /// What decides about a target.
    pub(crate) fn target_rule(&self) -> TargetRule {
        let rule = TargetRule::new(self.suite_threshold.unwrap_or(Threshold::ALL));
        let cases = u32::try_from(self.cases.len()).unwrap_or(u32::MAX);
        match (self.early_stop, self.suite_threshold) {
            (EarlyStop::Confident, Some(_)) => rule.confident(cases, self.risk().suite, self.seed),
            _ => rule,
        }
    }

    fn risk(&self) -> bakeoff_stats::Risk {
        let gating = self.targets.iter().filter(|(_, gate)| *gate).count().max(1) as u64;
        let cases = self.cases.len() as u64;
        stopping::risk(self.alpha, cases, gating, self.suite_threshold.is_some())
    }

    /// Where a trial stands: its target, and its place among all trials of the target.
    pub fn place(&self, key: &TrialKey) -> Option<(usize, usize)> {
        let target = self.targets.iter().position(|(name, _)| *name == key.target)?;
        let case = self.cases.position(key.case.as_str())?;
        let trial = key.trial.checked_sub(1).filter(|trial| *trial < self.trials)?;
        Some((target, case * self.trials as usize + trial as usize))
    }
}

/// Collects trial results. The last result of a trial is the one that counts.
#[derive(Debug)]
pub struct Aggregate {
    measure: Measure,
    /// The trials of each target, case by case.
    targets: Vec<Vec<Numbers>>,
    spent: NanoDollars,
    tokens: u64,
}

/// All that is kept of a trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Numbers {
    pub(crate) mark: Mark,
    pub(crate) error: Option<ErrorKind>,
    pub(crate) is_cached: bool,
    pub(crate) score_millionths: Option<u32>,
    pub(crate) latency_ms: Option<u32>,
    pub(crate) retries: u32,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost: Option<NanoDollars>,
    pub(crate) judge_cost: NanoDollars,
    pub(crate) commands: Option<u32>,
}

impl Numbers {
    fn of(result: &TrialResult) -> Numbers {
        let attempt = &result.attempt;
        let mark = match result.status {
            Status::Passed => Mark::Passed,
            Status::Failed => Mark::Failed,
            Status::Error => Mark::Error,
            // As if it had never come.
            Status::Skipped => Mark::Missing,
        };
        let error = attempt.error.as_ref().map(|error| error.kind);
        let latency = u32::try_from(attempt.timing.latency_ms).unwrap_or(u32::MAX);
        let is_agent = attempt.transcript.is_some() || !attempt.tool_uses.is_empty();
        Numbers {
            mark,
            error,
            is_cached: attempt.cached,
            score_millionths: result
                .score
                .map(|score| (score.clamp(0.0, 1.0) * 1e6).round() as u32),
            latency_ms: (error.is_none() && !attempt.cached).then_some(latency),
            retries: attempt.timing.retries,
            usage: attempt.usage,
            cost: attempt.cost,
            judge_cost: attempt.judge_cost.unwrap_or_default(),
            commands: is_agent
                .then(|| u32::try_from(bakeoff_check::command_count(attempt)).unwrap_or(u32::MAX)),
        }
    }
}

impl Aggregate {
    /// Nothing yet.
    pub fn new(measure: Measure) -> Aggregate {
        let trials = measure.cases.len() * measure.trials as usize;
        let targets = vec![vec![Numbers::default(); trials]; measure.targets.len()];
        Aggregate { measure, targets, spent: NanoDollars::default(), tokens: 0 }
    }

    /// Takes a result. One that belongs to no planned trial is left out.
    pub fn add(&mut self, result: &TrialResult) {
        let Some((target, place)) = self.measure.place(&result.key) else { return };
        let numbers = Numbers::of(result);
        self.targets[target][place] = numbers;
        self.spent += numbers.cost.unwrap_or_default();
        self.spent += numbers.judge_cost;
        for usage in [numbers.usage, result.attempt.judge_usage].into_iter().flatten() {
            self.tokens = self.tokens.saturating_add(usage.total());
        }
    }

    /// Trials that were judged: their target and turn, and how they ended.
    pub(crate) fn judged(&self) -> impl Iterator<Item = (usize, Turn, Status)> {
        let trials = self.measure.trials.max(1) as usize;
        self.targets.iter().enumerate().flat_map(move |(target, numbers)| {
            numbers.iter().enumerate().filter_map(move |(place, numbers)| {
                let status = match numbers.mark {
                    Mark::Passed => Status::Passed,
                    Mark::Failed => Status::Failed,
                    Mark::Missing | Mark::Error => return None,
                };
                let trial = u32::try_from(place % trials).ok()?;
                Some((target, Turn { case: place / trials, trial }, status))
            })
        })
    }

    /// Money and tokens so far, those of trials that were made again included.
    pub fn spent(&self) -> (NanoDollars, u64) {
        (self.spent, self.tokens)
    }

    /// What can be said now. `stats` brings the times; the rest of it is filled in.
    pub fn summary(mut self, run_id: &RunId, suite: &str, mut stats: RunStats) -> Summary {
        let (case_rule, target_rule) = (self.measure.case_rule(), self.measure.target_rule());
        let mut targets = Vec::with_capacity(self.targets.len());
        for (number, trials) in std::mem::take(&mut self.targets).into_iter().enumerate() {
            let sheet = Sheet { measure: &self.measure, trials: &trials, case_rule: &case_rule };
            targets.push(sheet.summary(number, &target_rule, &mut stats));
        }
        let verdict = targets
            .iter()
            .filter(|target| target.gate)
            .fold(Verdict::Passed, |worst, target| worst.worst(target.verdict));
        Summary {
            schema_version: SCHEMA_VERSION,
            run_id: run_id.clone(),
            suite: suite.to_owned(),
            verdict,
            targets,
            stats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_core::{Attempt, ErrorKind, TargetSummary, TrialError, TrialKey};
    use std::collections::BTreeMap;

    fn measure(trials: u32, threshold: &str, suite_threshold: Option<&str>) -> Measure {
        Measure {
            targets: vec![("one".into(), true), ("other".into(), false)],
            cases: Arc::new(["a", "b"].into_iter().collect()),
            trials,
            threshold: threshold.parse().unwrap(),
            suite_threshold: suite_threshold.map(|text| text.parse().unwrap()),
            early_stop: EarlyStop::Off,
            alpha: 0.05,
            seed: 0,
        }
    }

    fn result(target: &str, case: &str, trial: u32, status: Status) -> TrialResult {
        let error = (status == Status::Error)
            .then(|| TrialError { kind: ErrorKind::Transient, message: "gone".to_owned() });
        let key = TrialKey { target: target.into(), case: case.into(), trial };
        let attempt = Attempt { error, ..Attempt::default() };
        TrialResult { key, status, score: None, checks: Vec::new(), attempt }
    }

    fn verdict(measure: Measure, statuses: &[(&str, u32, Status)]) -> TargetSummary {
        let mut aggregate = Aggregate::new(measure);
        for (case, trial, status) in statuses {
            aggregate.add(&result("one", case, *trial, *status));
        }
        aggregate.summary(&"run".into(), "suite", RunStats::default()).targets.remove(0)
    }

    #[test]
    fn an_error_is_never_a_failure() {
        use Status::{Error, Failed, Passed};
        let all = |case: &'static str, one, two| [(case, 1, one), (case, 2, two)];
        let both = |a: [Status; 2], b: [Status; 2]| {
            let statuses = [all("a", a[0], a[1]), all("b", b[0], b[1])].concat();
            verdict(measure(2, "1.0", None), &statuses)
        };
        assert_eq!(both([Passed, Passed], [Passed, Passed]).verdict, Verdict::Passed);
        assert_eq!(both([Passed, Passed], [Passed, Error]).verdict, Verdict::Inconclusive);
        assert_eq!(both([Passed, Passed], [Failed, Error]).verdict, Verdict::Failed);
        let summary = both([Passed, Passed], [Passed, Error]);
        assert_eq!((summary.errors, summary.counted, summary.pass_count), (1, 3, 3));
        assert_eq!(summary.errors_by_kind, BTreeMap::from([("transient".to_owned(), 1)]));
        assert_eq!(summary.cases.iter().nth(1).unwrap().status, Error);
    }

    #[test]
    fn enough_passes_decide_whatever_the_errors() {
        let statuses = [
            ("a", 1, Status::Passed),
            ("a", 2, Status::Error),
            ("b", 1, Status::Passed),
            ("b", 2, Status::Passed),
        ];
        assert_eq!(verdict(measure(2, "0.5", None), &statuses).verdict, Verdict::Passed);
    }

    #[test]
    fn a_suite_threshold_counts_cases() {
        let statuses = [("a", 1, Status::Passed), ("b", 1, Status::Failed)];
        assert_eq!(verdict(measure(1, "1", None), &statuses).verdict, Verdict::Failed);
        assert_eq!(verdict(measure(1, "1", Some("0.5")), &statuses).verdict, Verdict::Passed);
    }

    #[test]
    fn targets_without_a_gate_do_not_decide_and_missing_trials_are_skipped() {
        let mut aggregate = Aggregate::new(measure(1, "1", None));
        for case in ["a", "b"] {
            aggregate.add(&result("one", case, 1, Status::Passed));
        }
        aggregate.add(&result("other", "a", 1, Status::Failed));
        aggregate.add(&result("nobody", "a", 1, Status::Failed));
        let summary = aggregate.summary(&"run".into(), "suite", RunStats::default());
        assert_eq!(summary.verdict, Verdict::Passed);
        assert_eq!(summary.targets[1].skipped, 1);
        assert_eq!(summary.targets[1].cases.iter().nth(1).unwrap().status, Status::Skipped);
    }

    #[test]
    fn the_order_of_results_does_not_matter() {
        let mut results = Vec::new();
        for (number, case) in ["a", "b", "a", "b"].iter().enumerate() {
            let status = if number == 1 { Status::Failed } else { Status::Passed };
            let mut one = result("one", case, number as u32 / 2 + 1, status);
            one.score = Some([0.1, 0.2, 0.3, 0.7][number]);
            one.attempt.timing.latency_ms = number as u64;
            results.push(one);
        }
        let summary = |results: &[TrialResult]| {
            let mut aggregate = Aggregate::new(measure(2, "0.5", None));
            results.iter().for_each(|result| aggregate.add(result));
            aggregate.summary(&"run".into(), "suite", RunStats::default())
        };
        let forward = summary(&results);
        results.reverse();
        assert_eq!(forward, summary(&results));
        assert_eq!(forward.stats.latency_p50_ms[&"one".into()], 1);
    }
}
