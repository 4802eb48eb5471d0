//! Aggregation of trial results into a summary. Reads only [`TrialResult`]s, in any order.

use crate::lane::TrialIndex;
use crate::stopping::{self, CaseRule, CaseRules, TargetRule, TrialMark};
use crate::tally::TargetTrials;
use crate::trial_plan::TrialPlan;
use crate::verdict_rule::describe_run;
use bakeoff_core::{
    Attempt, CaseIds, ErrorKind, NanoDollars, RunId, RunStats, SCHEMA_VERSION, Status, Summary,
    TargetName, TrialKey, TrialResult, Usage, Verdict,
};
use bakeoff_pace::Expense;
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
    /// Planned trials of each case, and the share of them that must pass.
    pub plan: TrialPlan,
    /// Share of a target's cases that must pass; all when absent.
    pub suite_threshold: Option<Threshold>,
    /// Whether `suite_threshold` comes from `--ci` alone.
    pub is_ci_rule: bool,
    /// Lowest mean score with which a target passes.
    pub min_score: Option<f64>,
    /// Whether pass rates of cases are over the planned trials, as in FastSkill.
    pub has_planned_rates: bool,
    /// When a case is stopped before its last trial.
    pub early_stop: EarlyStop,
    /// Risk that `confident` changes the verdict of the run.
    pub alpha: f64,
    /// Seed of the order of cases where a share of them may be enough.
    pub seed: u64,
}

impl RunCriteria {
    /// Returns the rules that decide about the cases.
    pub(crate) fn case_rules(&self) -> CaseRules {
        let risk = self.risk().case;
        CaseRules::new(self.plan.clone(), |rule| CaseRule::new(rule, self.early_stop, risk))
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
        let trial = self.plan.range(case).nth(key.trial.checked_sub(1)? as usize)?;
        Some((target, trial))
    }
}

/// Collects trial results. The last result of a trial counts.
#[derive(Debug)]
pub struct Aggregate {
    criteria: RunCriteria,
    /// The trials of each target, case by case.
    targets: Vec<Vec<TrialNumbers>>,
    /// Outputs of each target.
    outputs: Vec<OutputCounts>,
    spent: NanoDollars,
    tokens: u64,
}

/// Outputs of a target.
#[derive(Debug, Clone, Copy, Default)]
struct OutputCounts {
    /// Judged outputs.
    judged: u64,
    /// Whether one of them has any content.
    has_content: bool,
}

/// Returns whether an attempt left anything: text, tool uses or files.
fn has_content(attempt: &Attempt) -> bool {
    let wrote_file = || attempt.files.iter().flatten().any(|(_, file)| file.text.is_some());
    !attempt.output.trim().is_empty() || !attempt.tool_uses.is_empty() || wrote_file()
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
    /// Whether one of its checks is graded.
    pub(crate) is_graded: bool,
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
            is_graded: result.checks.iter().any(|check| check.graded),
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
        let trials = vec![TrialNumbers::default(); criteria.plan.total()];
        let targets = vec![trials; criteria.targets.len()];
        let outputs = vec![OutputCounts::default(); criteria.targets.len()];
        Aggregate { criteria, targets, outputs, spent: NanoDollars::default(), tokens: 0 }
    }

    /// Adds a result. Results of trials that are not planned are ignored.
    pub fn add(&mut self, result: &TrialResult) {
        let Some((target, trial)) = self.criteria.position(&result.key) else { return };
        let numbers = TrialNumbers::of(result);
        self.targets[target][trial] = numbers;
        if matches!(result.status, Status::Passed | Status::Failed) {
            self.outputs[target].judged += 1;
            self.outputs[target].has_content |= has_content(&result.attempt);
        }
        // Saved costs were paid for by other trials.
        let cost = numbers.cost.unwrap_or_default().0.saturating_sub(result.attempt.saved.0);
        self.spent += NanoDollars(cost.max(0));
        self.spent += numbers.judge_cost;
        self.spent += result.attempt.lost_cost;
        for usage in [numbers.usage, result.attempt.judge_usage].into_iter().flatten() {
            self.tokens = self.tokens.saturating_add(usage.total());
        }
    }

    /// Returns the targets of which all judged outputs are empty, and the numbers of these outputs.
    pub(crate) fn targets_without_output(&self) -> impl Iterator<Item = (&TargetName, u64)> {
        let names = self.criteria.targets.iter().map(|(name, _)| name);
        names.zip(&self.outputs).filter_map(|(name, outputs)| {
            (outputs.judged > 0 && !outputs.has_content).then_some((name, outputs.judged))
        })
    }

    /// Returns the trials that passed or failed. Trials with errors are executed again.
    pub(crate) fn finished(&self) -> impl Iterator<Item = FinishedTrial> {
        self.targets.iter().enumerate().flat_map(move |(target, numbers)| {
            self.numbered(numbers).filter_map(move |(index, numbers)| {
                let status = match numbers.mark {
                    TrialMark::Passed => Status::Passed,
                    TrialMark::Failed => Status::Failed,
                    TrialMark::Missing | TrialMark::Error => return None,
                };
                Some(FinishedTrial { target, index, status })
            })
        })
    }

    /// Returns the planned trials that neither passed nor failed.
    pub(crate) fn unfinished(&self) -> Vec<TrialKey> {
        let of_target = |((target, _), numbers): (&(TargetName, bool), &Vec<TrialNumbers>)| {
            let key = |(index, _): (TrialIndex, _)| {
                let case = self.criteria.cases.get(index.case)?.into();
                Some(TrialKey { target: target.clone(), case, trial: index.trial + 1 })
            };
            let is_open = |(_, numbers): &(TrialIndex, &TrialNumbers)| {
                matches!(numbers.mark, TrialMark::Missing | TrialMark::Error)
            };
            self.numbered(numbers).filter(is_open).filter_map(key).collect::<Vec<_>>()
        };
        self.criteria.targets.iter().zip(&self.targets).flat_map(of_target).collect()
    }

    /// Returns the trials of a target with their indices.
    fn numbered<'a>(
        &'a self,
        trials: &'a [TrialNumbers],
    ) -> impl Iterator<Item = (TrialIndex, &'a TrialNumbers)> {
        self.criteria.plan.ranges().enumerate().flat_map(move |(case, range)| {
            (0..)
                .zip(&trials[range])
                .map(move |(trial, numbers)| (TrialIndex { case, trial }, numbers))
        })
    }

    /// Returns the cost and the tokens so far, including repeated executions of a trial.
    pub fn spent(&self) -> Expense {
        Expense { cost: self.spent, tokens: self.tokens }
    }

    /// Summarizes the results. `stats` has the times of the run; its other fields are filled in.
    pub fn summary(mut self, run_id: &RunId, suite: &str, mut stats: RunStats) -> Summary {
        let (case_rules, target_rule) = (self.criteria.case_rules(), self.criteria.target_rule());
        let mut targets = Vec::with_capacity(self.targets.len());
        for (number, trials) in std::mem::take(&mut self.targets).into_iter().enumerate() {
            let table =
                TargetTrials { criteria: &self.criteria, trials: &trials, case_rules: &case_rules };
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
            rule: describe_run(&targets, verdict),
            targets,
            stats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial_plan::TrialRule;
    use bakeoff_core::{ErrorKind, TargetSummary, TrialError, TrialKey, WorkspaceFile};
    use std::collections::BTreeMap;

    fn criteria(trials: u32, threshold: &str, suite_threshold: Option<&str>) -> RunCriteria {
        let rule = TrialRule { trials, threshold: threshold.parse().unwrap() };
        RunCriteria {
            targets: vec![("one".into(), true), ("other".into(), false)],
            cases: Arc::new(["a", "b"].into_iter().collect()),
            plan: TrialPlan::uniform(rule, 2),
            suite_threshold: suite_threshold.map(|text| text.parse().unwrap()),
            is_ci_rule: false,
            min_score: None,
            has_planned_rates: false,
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
    fn rule_states_the_figures_of_the_verdict() {
        let (passed, failed, error) = (Status::Passed, Status::Failed, Status::Error);
        let rule = |criteria: RunCriteria, statuses: &[(&str, u32, Status)]| {
            let target = verdict(criteria, statuses);
            (target.verdict, target.rule)
        };
        let half = [("a", 1, passed), ("b", 1, failed)];
        assert_eq!(
            rule(criteria(1, "1", None), &half),
            (Verdict::Failed, "1 of 2 cases pass, needs 2".to_owned())
        );
        assert_eq!(
            rule(criteria(1, "1", Some("0.5")), &half),
            (Verdict::Passed, "1 of 2 cases ≥ 50 %".to_owned())
        );
        let ci = RunCriteria { is_ci_rule: true, ..criteria(1, "0.8", Some("0.8")) };
        assert_eq!(
            rule(ci, &half),
            (Verdict::Failed, "1 of 2 cases < 80 % (rule of --ci)".to_owned())
        );
        assert_eq!(
            rule(criteria(1, "1", None), &[("a", 1, passed), ("b", 1, error)]),
            (Verdict::Inconclusive, "1 of 2 cases pass, 1 without a verdict, needs 2".to_owned())
        );
        let both = [("a", 1, passed), ("a", 2, passed), ("b", 1, passed), ("b", 2, failed)];
        let found = rule(criteria(2, "0.5", None), &both);
        let expected = "2 of 2 cases pass, needs 2 (a case passes with 1 of 2 trials)";
        assert_eq!(found, (Verdict::Passed, expected.to_owned()));
    }

    #[test]
    fn rule_of_the_run_names_the_gating_targets_that_decide() {
        let gates = |other| vec![("one".into(), true), ("other".into(), other)];
        let summary = |other_gates| {
            let targets = gates(other_gates);
            let mut aggregate = Aggregate::new(RunCriteria { targets, ..criteria(1, "1", None) });
            for case in ["a", "b"] {
                aggregate.add(&result("one", case, 1, Status::Passed));
                aggregate.add(&result("other", case, 1, Status::Failed));
            }
            aggregate.summary(&"run".into(), "suite", RunStats::default())
        };
        assert_eq!(summary(false).rule, "2 of 2 cases pass, needs 2");
        assert_eq!(summary(true).rule, "other: 0 of 2 cases pass, needs 2");
    }

    #[test]
    fn min_score_is_part_of_the_verdict() {
        let verdict = |scores: [Option<f64>; 2], min| {
            let criteria = RunCriteria { min_score: Some(min), ..criteria(1, "0", None) };
            let mut aggregate = Aggregate::new(criteria);
            for (case, score) in ["a", "b"].into_iter().zip(scores) {
                let status = if score.is_some() { Status::Passed } else { Status::Error };
                aggregate.add(&TrialResult { score, ..result("one", case, 1, status) });
            }
            let summary = aggregate.summary(&"run".into(), "suite", RunStats::default());
            (summary.verdict, summary.rule.split("; ").last().unwrap().to_owned())
        };
        let both = [Some(0.9), Some(0.5)];
        assert_eq!(verdict(both, 0.7), (Verdict::Passed, "mean score 0.700 ≥ 0.7".to_owned()));
        assert_eq!(verdict(both, 0.71), (Verdict::Failed, "mean score 0.700 < 0.71".to_owned()));
        // The missing score could decide.
        let missing = "mean score 0.900 of the trials that ran, needs 0.7";
        assert_eq!(verdict([Some(0.9), None], 0.7), (Verdict::Inconclusive, missing.to_owned()));
        assert_eq!(verdict([Some(0.2), None], 0.7).0, Verdict::Failed);
    }

    #[test]
    fn targets_without_any_output_are_found() {
        let mut aggregate = Aggregate::new(criteria(1, "1", None));
        for case in ["a", "b"] {
            aggregate.add(&result("one", case, 1, Status::Passed));
        }
        let mut wrote = result("other", "a", 1, Status::Passed);
        let file = WorkspaceFile { bytes: 1, text: Some("x".to_owned()) };
        wrote.attempt.files = Some([("out.txt".to_owned(), file)].into());
        aggregate.add(&wrote);
        let found: Vec<(String, u64)> = aggregate
            .targets_without_output()
            .map(|(name, count)| (name.to_string(), count))
            .collect();
        assert_eq!(found, [("one".to_owned(), 2)]);
        let mut text = result("one", "b", 1, Status::Failed);
        text.attempt.output = "x".to_owned();
        aggregate.add(&text);
        assert_eq!(aggregate.targets_without_output().count(), 0);
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
