//! From trial results to a summary. Reads [`TrialResult`]s and nothing else, in any order.

use crate::lane::Turn;
use crate::stopping::{self, CaseRule, CaseState, Counts, EarlyStop, Mark, TargetRule};
use bakeoff_core::{
    CaseCounts, CaseIds, CaseList, ErrorKind, Interval, NanoDollars, PassK, RunId, RunStats,
    SCHEMA_VERSION, Score, Status, Summary, TargetName, TargetSummary, TrialKey, TrialResult,
    TrueRate, Usage, Verdict,
};
use bakeoff_stats::{
    CaseRate, Decision, RateEvidence, Threshold, confidence_sequence, flake_rate, mean_pass_rate,
    mean_score, pass_at_k, pass_hat_k, quantile_rank, wilson,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Numbers of trials for which pass@k and pass^k are shown, beside all of them.
const SHOWN_K: [u32; 4] = [2, 3, 5, 10];

/// The level of every interval and of what is said about true rates.
const ALPHA: f64 = 0.05;

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
    pub(crate) fn place(&self, key: &TrialKey) -> Option<(usize, usize)> {
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
struct Numbers {
    mark: Mark,
    error: Option<ErrorKind>,
    is_cached: bool,
    score_millionths: Option<u32>,
    latency_ms: Option<u32>,
    retries: u32,
    usage: Option<Usage>,
    cost: Option<NanoDollars>,
    judge_cost: NanoDollars,
    commands: Option<u32>,
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
            commands: is_agent.then(|| u32::try_from(attempt.tool_uses.len()).unwrap_or(u32::MAX)),
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

/// All trials of one target.
struct Sheet<'a> {
    measure: &'a Measure,
    trials: &'a [Numbers],
    case_rule: &'a CaseRule,
}

impl Sheet<'_> {
    fn summary(
        &self,
        number: usize,
        target_rule: &TargetRule,
        stats: &mut RunStats,
    ) -> TargetSummary {
        let (name, gate) = &self.measure.targets[number];
        let per_case = self.measure.trials.max(1) as usize;
        let states: Vec<CaseState> = self.trials.chunks(per_case).map(|c| self.state(c)).collect();
        let read = target_rule.read(&states);
        let needless: HashSet<u32> = read.needless.iter().copied().collect();
        let mut tally = Tally::default();
        for (number, (case, state)) in (0..).zip(self.trials.chunks(per_case).zip(&states)) {
            let counting = match state.over {
                _ if needless.contains(&number) => 0,
                Some(first) => first.total() as usize,
                None => case.len(),
            };
            tally.case(case, counting, *state, self.measure.threshold);
        }
        let verdict = match read.decision {
            Decision::Passed => Verdict::Passed,
            Decision::Failed => Verdict::Failed,
            Decision::Open => Verdict::Inconclusive,
        };
        tally.clock(name, stats, per_case);
        let errors_by_kind = std::mem::take(&mut tally.errors_by_kind);
        let total_cases = tally.cases.len() as u64;
        let with = |status| tally.cases.iter().filter(|case| case.status == status).count() as u64;
        let sum = |part: fn(&CaseCounts) -> u32| {
            tally.cases.iter().map(|case| u64::from(part(case))).sum::<u64>()
        };
        let (passed, failed) = (with(Some(Status::Passed)), with(Some(Status::Failed)));
        let stopped_early = tally.cases.iter().filter(|case| case.stopped_early).count() as u64;
        let estimate = mean_pass_rate(tally.cases.iter().map(rate));
        let total_trials = total_cases * u64::from(self.measure.trials);
        let made = sum(|case| case.counted() + case.errors);
        let skipped = total_trials.saturating_sub(made);
        TargetSummary {
            target: name.clone(),
            gate: *gate,
            verdict,
            suite_pass: verdict == Verdict::Passed,
            suite_pass_rate: passed as f64 / total_cases.max(1) as f64,
            total_cases,
            passed,
            failed,
            inconclusive: with(None) - needless.len() as u64,
            trials_per_case: self.measure.trials,
            pass_threshold: self.measure.threshold.as_f64(),
            total_trials,
            pass_count: sum(|case| case.passed),
            counted: sum(CaseCounts::counted),
            errors: sum(|case| case.errors),
            errors_by_kind,
            skipped,
            saved: tally.saved,
            stopped_early,
            flaky: tally.cases.iter().filter(|case| case.passed > 0 && case.failed > 0).count()
                as u64,
            mean_pass_rate: estimate.map(|estimate| estimate.mean),
            interval: estimate.map(|estimate| interval(estimate.interval)),
            score: tally.score(),
            pass_k: if stopped_early == 0 { tally.pass_k(self.measure.trials) } else { Vec::new() },
            usage: tally.usage,
            cost_nanodollars: tally.cost,
            judge_cost_nanodollars: tally.judge_cost,
            unpriced: tally.unpriced,
            cases: CaseList::new(
                Arc::clone(&self.measure.cases),
                tally.cases,
                self.measure.trials,
                tally.statuses,
            ),
        }
    }
}

impl Sheet<'_> {
    fn state(&self, trials: &[Numbers]) -> CaseState {
        let marks: Vec<Mark> = trials.iter().map(|trial| trial.mark).collect();
        self.case_rule.read(&marks)
    }
}

/// Sums over the trials of one target that count.
#[derive(Default)]
struct Tally {
    cases: Vec<CaseCounts>,
    statuses: Vec<Status>,
    errors_by_kind: BTreeMap<String, u64>,
    usage: Usage,
    cost: NanoDollars,
    judge_cost: NanoDollars,
    unpriced: u64,
    saved: u64,
    latencies_ms: Vec<u32>,
    case_latency_ms: Vec<Option<[u32; 2]>>,
    retries: u64,
    cached: u64,
    surplus: u64,
    surplus_cost: NanoDollars,
}

impl Tally {
    /// The first so many trials of a case count.
    fn case(&mut self, trials: &[Numbers], counting: usize, state: CaseState, bar: Threshold) {
        let mut counts = Counts::default();
        let mut case = CaseCounts {
            status: match state.decision {
                Decision::Passed if counting > 0 => Some(Status::Passed),
                Decision::Failed if counting > 0 => Some(Status::Failed),
                _ => None,
            },
            stopped_early: counting > 0 && counting < trials.len(),
            ..CaseCounts::default()
        };
        let mut latencies = Vec::new();
        for (number, trial) in trials.iter().enumerate() {
            let counts_here = number < counting && trial.mark != Mark::Missing;
            self.statuses.push(match trial.mark {
                Mark::Passed if counts_here => Status::Passed,
                Mark::Failed if counts_here => Status::Failed,
                Mark::Error if counts_here => Status::Error,
                _ => Status::Skipped,
            });
            if counts_here {
                counts.add(trial.mark);
                self.add(trial, &mut case);
                latencies.extend(trial.latency_ms);
            } else if trial.mark != Mark::Missing {
                self.surplus += 1;
                self.surplus_cost += trial.cost.unwrap_or_default();
                self.surplus_cost += trial.judge_cost;
            }
        }
        self.saved += (trials.len() - counting) as u64;
        (case.passed, case.failed, case.errors) = (counts.passed, counts.failed, counts.errors);
        latencies.sort_unstable();
        let at = |share| quantile(&latencies, share);
        self.case_latency_ms.push(at(0.5).zip(at(0.95)).map(|(median, p95)| [median, p95]));
        self.latencies_ms.append(&mut latencies);
        self.judge(&mut case, bar);
        self.cases.push(case);
    }

    fn add(&mut self, trial: &Numbers, case: &mut CaseCounts) {
        case.score_millionths += u64::from(trial.score_millionths.unwrap_or_default());
        if let Some(usage) = trial.usage {
            case.has_usage = true;
            case.input_tokens = case.input_tokens.saturating_add(usage.prompt());
            case.output_tokens = case.output_tokens.saturating_add(usage.output);
            self.usage += usage;
        }
        match trial.cost {
            Some(cost) => {
                case.cost += cost;
                self.cost += cost;
            }
            None if trial.usage.is_some() => self.unpriced += 1,
            None => {}
        }
        self.judge_cost += trial.judge_cost;
        if let Some(commands) = trial.commands {
            *case.commands.get_or_insert_default() += u64::from(commands);
        }
        if let Some(kind) = trial.error {
            *self.errors_by_kind.entry(word(kind)).or_default() += 1;
        }
        self.retries += u64::from(trial.retries);
        self.cached += u64::from(trial.is_cached);
    }

    /// What can be said of a case's true pass rate.
    fn judge(&mut self, case: &mut CaseCounts, threshold: Threshold) {
        let (passed, failed) = (u64::from(case.passed), u64::from(case.failed));
        let counted = passed + failed;
        if counted == 0 {
            return;
        }
        let found = if case.stopped_early {
            confidence_sequence(passed, failed, ALPHA)
        } else {
            wilson(passed, counted)
        };
        case.interval = Some(interval(found));
        case.flake_rate = flake_rate(rate(case));
        let evidence = RateEvidence::new(passed, failed, threshold.as_f64());
        case.true_rate = match evidence.true_rate(ALPHA) {
            bakeoff_stats::TrueRate::Above => TrueRate::Above,
            bakeoff_stats::TrueRate::Below => TrueRate::Below,
            bakeoff_stats::TrueRate::Unresolved => TrueRate::Unresolved,
        };
    }

    /// Mean score over the cases.
    fn score(&self) -> Option<Score> {
        let judged = self.cases.iter().filter(|case| case.counted() > 0);
        let scores: Vec<f64> = judged
            .map(|case| case.score_millionths as f64 / 1e6 / f64::from(case.counted()))
            .collect();
        over_cases(&scores)
    }

    /// Chances of several trials together, over the cases that have as many.
    fn pass_k(&self, trials: u32) -> Vec<PassK> {
        let shown: BTreeSet<u32> = SHOWN_K.into_iter().chain([trials]).collect();
        let mean = |k: u32, chance: fn(u64, u64, u64) -> Option<bakeoff_stats::Chance>| {
            let of =
                |case: &CaseCounts| chance(case.passed.into(), case.counted().into(), k.into());
            let values: Vec<f64> =
                self.cases.iter().filter_map(of).map(|chance| chance.value).collect();
            over_cases(&values).map(|score| not_too_sure(score, values.len() as u64))
        };
        shown
            .into_iter()
            .filter(|k| (2..=trials).contains(k))
            .filter_map(|k| Some(PassK { k, any: mean(k, pass_at_k)?, all: mean(k, pass_hat_k)? }))
            .collect()
    }

    /// Moves what depends on the clock to where it belongs.
    fn clock(&mut self, name: &TargetName, stats: &mut RunStats, per_case: usize) {
        self.latencies_ms.sort_unstable();
        let at = |share| quantile(&self.latencies_ms, share);
        if let (Some(median), Some(p95)) = (at(0.5), at(0.95)) {
            stats.latency_p50_ms.insert(name.clone(), median.into());
            stats.latency_p95_ms.insert(name.clone(), p95.into());
        }
        if per_case > 1 {
            let by_case = std::mem::take(&mut self.case_latency_ms);
            stats.case_latency_ms.insert(name.clone(), by_case);
        }
        stats.retries += self.retries;
        stats.cached += self.cached;
        stats.surplus += self.surplus;
        stats.surplus_cost_nanodollars += self.surplus_cost;
    }
}

fn rate(case: &CaseCounts) -> CaseRate {
    CaseRate { passed: case.passed.into(), counted: case.counted().into() }
}

fn quantile(ascending: &[u32], share: f64) -> Option<u32> {
    let rank = quantile_rank(ascending.len() as u64, share);
    ascending.get(usize::try_from(rank).ok()?.checked_sub(1)?).copied()
}

fn over_cases(values: &[f64]) -> Option<Score> {
    let estimate = mean_score(values)?;
    Some(Score { mean: estimate.mean, interval: interval(estimate.interval) })
}

/// When no case differs from another, their spread says nothing about cases that are not there;
/// Wilson's interval does.
fn not_too_sure(score: Score, cases: u64) -> Score {
    let passed = if score.mean <= 0.0 { 0 } else { cases };
    if score.mean > 0.0 && score.mean < 1.0 {
        return score;
    }
    Score { interval: interval(wilson(passed, cases)), ..score }
}

fn interval(found: bakeoff_stats::Interval) -> Interval {
    Interval { low: found.low, high: found.high }
}

/// A kind of error as it is written in files.
pub(crate) fn word(kind: ErrorKind) -> String {
    let kind = serde_json::to_value(kind).ok();
    kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("other").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_core::{Attempt, ErrorKind, TrialError, TrialKey};

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
