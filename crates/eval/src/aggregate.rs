//! Aggregation of trial results into a summary. Reads only [`TrialResult`]s, in any order.

use crate::lane::TrialIndex;
use crate::stopping::{self, CaseRule, TargetRule, TrialMark};
use crate::tally::TargetTrials;
use bakeoff_core::{
    CaseIds, ErrorKind, NanoDollars, RunId, RunStats, SCHEMA_VERSION, Status, Summary, TargetName,
    TrialKey, TrialResult, Usage, Verdict,
};
use bakeoff_stats::Threshold;
use bakeoff_suite::EarlyStop;
use std::sync::Arc;

/// Targets, cases and thresholds by which a run is judged.
#[derive(Debug, Clone)]
pub struct RunCriteria {
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
    /// Risk that `confident` changes the verdict of the run.
    pub alpha: f64,
    /// Seed of the order of cases where a share of them may be enough.
    pub seed: u64,
}

impl RunCriteria {
    /// Returns the rule that decides about a case.
    pub(crate) fn case_rule(&self) -> CaseRule {
        CaseRule::new(self.trials, self.threshold, self.early_stop, self.risk().case)
    }

    /// Returns the rule that decides about a target.
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

    /// Returns the index of a trial's target, and the trial's index among all trials of the target;
    /// `None` for a trial that is not planned.
    pub fn position(&self, key: &TrialKey) -> Option<(usize, usize)> {
        let target = self.targets.iter().position(|(name, _)| *name == key.target)?;
        let case = self.cases.position(key.case.as_str())?;
        let trial = key.trial.checked_sub(1).filter(|trial| *trial < self.trials)?;
        Some((target, case * self.trials as usize + trial as usize))
    }
}

/// Collects trial results. The last result of a trial counts.
#[derive(Debug)]
pub struct Aggregate {
    criteria: RunCriteria,
    /// The trials of each target, case by case.
    targets: Vec<Vec<TrialNumbers>>,
    spent: NanoDollars,
    tokens: u64,
}

/// A finished trial of an earlier process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinishedTrial {
    /// Index of its target.
    pub(crate) target: usize,
    pub(crate) index: TrialIndex,
    pub(crate) status: Status,
}

/// The values of a trial that the summary needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TrialNumbers {
    pub(crate) mark: TrialMark,
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

impl TrialNumbers {
    fn of(result: &TrialResult) -> TrialNumbers {
        let attempt = &result.attempt;
        let mark = match result.status {
            Status::Passed => TrialMark::Passed,
            Status::Failed => TrialMark::Failed,
            Status::Error => TrialMark::Error,
            // A skipped trial counts as not executed.
            Status::Skipped => TrialMark::Missing,
        };
        let error = attempt.error.as_ref().map(|error| error.kind);
        let latency = u32::try_from(attempt.timing.latency_ms).unwrap_or(u32::MAX);
        let is_agent = attempt.transcript.is_some() || !attempt.tool_uses.is_empty();
        TrialNumbers {
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
    /// Creates an aggregate without results.
    pub fn new(criteria: RunCriteria) -> Aggregate {
        let trials = criteria.cases.len() * criteria.trials as usize;
        let targets = vec![vec![TrialNumbers::default(); trials]; criteria.targets.len()];
        Aggregate { criteria, targets, spent: NanoDollars::default(), tokens: 0 }
    }

    /// Adds a result. Results of trials that are not planned are ignored.
    pub fn add(&mut self, result: &TrialResult) {
        let Some((target, trial)) = self.criteria.position(&result.key) else { return };
        let numbers = TrialNumbers::of(result);
        self.targets[target][trial] = numbers;
        self.spent += numbers.cost.unwrap_or_default();
        self.spent += numbers.judge_cost;
        for usage in [numbers.usage, result.attempt.judge_usage].into_iter().flatten() {
            self.tokens = self.tokens.saturating_add(usage.total());
        }
    }

    /// Returns the trials that passed or failed. Trials with errors are executed again.
    pub(crate) fn finished(&self) -> impl Iterator<Item = FinishedTrial> {
        let trials = self.criteria.trials.max(1) as usize;
        self.targets.iter().enumerate().flat_map(move |(target, numbers)| {
            numbers.iter().enumerate().filter_map(move |(number, numbers)| {
                let status = match numbers.mark {
                    TrialMark::Passed => Status::Passed,
                    TrialMark::Failed => Status::Failed,
                    TrialMark::Missing | TrialMark::Error => return None,
                };
                let trial = u32::try_from(number % trials).ok()?;
                let index = TrialIndex { case: number / trials, trial };
                Some(FinishedTrial { target, index, status })
            })
        })
    }

    /// Returns the planned trials that neither passed nor failed.
    pub(crate) fn unfinished(&self) -> Vec<TrialKey> {
        let trials = self.criteria.trials.max(1) as usize;
        let of_target = |((target, _), numbers): (&(TargetName, bool), &Vec<TrialNumbers>)| {
            let key = |(number, _)| {
                let case = self.criteria.cases.get(number / trials)?.into();
                let trial = u32::try_from(number % trials).ok()? + 1;
                Some(TrialKey { target: target.clone(), case, trial })
            };
            let is_open = |(_, numbers): &(usize, &TrialNumbers)| {
                matches!(numbers.mark, TrialMark::Missing | TrialMark::Error)
            };
            numbers.iter().enumerate().filter(is_open).filter_map(key).collect::<Vec<_>>()
        };
        self.criteria.targets.iter().zip(&self.targets).flat_map(of_target).collect()
    }

    /// Returns the cost and the tokens so far, including repeated executions of a trial.
    pub fn spent(&self) -> (NanoDollars, u64) {
        (self.spent, self.tokens)
    }

    /// Summarizes the results. `stats` has the times of the run; its other fields are filled in.
    pub fn summary(mut self, run_id: &RunId, suite: &str, mut stats: RunStats) -> Summary {
        let (case_rule, target_rule) = (self.criteria.case_rule(), self.criteria.target_rule());
        let mut targets = Vec::with_capacity(self.targets.len());
        for (number, trials) in std::mem::take(&mut self.targets).into_iter().enumerate() {
            let table =
                TargetTrials { criteria: &self.criteria, trials: &trials, case_rule: &case_rule };
            targets.push(table.summary(number, &target_rule, &mut stats));
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

    fn criteria(trials: u32, threshold: &str, suite_threshold: Option<&str>) -> RunCriteria {
        RunCriteria {
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
        TrialResult { key, tags: Vec::new(), status, score: None, checks: Vec::new(), attempt }
    }

    fn verdict(criteria: RunCriteria, statuses: &[(&str, u32, Status)]) -> TargetSummary {
        let mut aggregate = Aggregate::new(criteria);
        for (case, trial, status) in statuses {
            aggregate.add(&result("one", case, *trial, *status));
        }
        aggregate.summary(&"run".into(), "suite", RunStats::default()).targets.remove(0)
    }

    #[test]
    fn errors_are_not_failures() {
        use Status::{Error, Failed, Passed};
        let all = |case: &'static str, one, two| [(case, 1, one), (case, 2, two)];
        let both = |a: [Status; 2], b: [Status; 2]| {
            let statuses = [all("a", a[0], a[1]), all("b", b[0], b[1])].concat();
            verdict(criteria(2, "1.0", None), &statuses)
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
    fn enough_passes_decide_despite_errors() {
        let statuses = [
            ("a", 1, Status::Passed),
            ("a", 2, Status::Error),
            ("b", 1, Status::Passed),
            ("b", 2, Status::Passed),
        ];
        assert_eq!(verdict(criteria(2, "0.5", None), &statuses).verdict, Verdict::Passed);
    }

    #[test]
    fn suite_threshold_counts_cases() {
        let statuses = [("a", 1, Status::Passed), ("b", 1, Status::Failed)];
        assert_eq!(verdict(criteria(1, "1", None), &statuses).verdict, Verdict::Failed);
        assert_eq!(verdict(criteria(1, "1", Some("0.5")), &statuses).verdict, Verdict::Passed);
    }

    #[test]
    fn targets_without_a_gate_do_not_decide_and_missing_trials_count_as_skipped() {
        let mut aggregate = Aggregate::new(criteria(1, "1", None));
        for case in ["a", "b"] {
            aggregate.add(&result("one", case, 1, Status::Passed));
        }
        aggregate.add(&result("other", "a", 1, Status::Failed));
        aggregate.add(&result("unknown", "a", 1, Status::Failed));
        let summary = aggregate.summary(&"run".into(), "suite", RunStats::default());
        assert_eq!(summary.verdict, Verdict::Passed);
        assert_eq!(summary.targets[1].skipped, 1);
        assert_eq!(summary.targets[1].cases.iter().nth(1).unwrap().status, Status::Skipped);
    }

    #[test]
    fn score_interval_is_in_range_and_has_a_width() {
        let interval = |scores: [f64; 2]| {
            let mut aggregate = Aggregate::new(criteria(1, "1", None));
            for (case, score) in ["a", "b"].into_iter().zip(scores) {
                let mut one = result("one", case, 1, Status::Passed);
                one.score = Some(score);
                aggregate.add(&one);
            }
            let summary = aggregate.summary(&"run".into(), "suite", RunStats::default());
            summary.targets[0].score.unwrap().interval
        };
        for scores in [[0.0, 1.0], [0.2, 0.9], [0.5, 0.5]] {
            let found = interval(scores);
            assert!(0.0 <= found.low && found.high <= 1.0, "{found:?}");
            assert!(found.high - found.low > 0.9, "{found:?}");
        }
    }

    #[test]
    fn summary_does_not_depend_on_the_order_of_results() {
        let mut results = Vec::new();
        for (number, case) in ["a", "b", "a", "b"].iter().enumerate() {
            let status = if number == 1 { Status::Failed } else { Status::Passed };
            let mut one = result("one", case, number as u32 / 2 + 1, status);
            one.score = Some([0.1, 0.2, 0.3, 0.7][number]);
            one.attempt.timing.latency_ms = number as u64;
            results.push(one);
        }
        let summary = |results: &[TrialResult]| {
            let mut aggregate = Aggregate::new(criteria(2, "0.5", None));
            results.iter().for_each(|result| aggregate.add(result));
            aggregate.summary(&"run".into(), "suite", RunStats::default())
        };
        let forward = summary(&results);
        results.reverse();
        assert_eq!(forward, summary(&results));
        assert_eq!(forward.stats.latency_p50_ms[&"one".into()], 1);
    }
}
