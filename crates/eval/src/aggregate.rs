//! From trial results to a summary. Reads [`TrialResult`]s and nothing else, in any order.

use bakeoff_core::{
    CaseCounts, CaseIds, CaseList, Interval, NanoDollars, RunId, RunStats, SCHEMA_VERSION, Status,
    Summary, TargetName, TargetSummary, TrialResult, Usage, Verdict,
};
use bakeoff_stats::{CaseRate, Decision, Threshold, mean_pass_rate};
use std::collections::BTreeMap;
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
}

/// Collects trial results.
#[derive(Debug)]
pub struct Aggregate {
    measure: Measure,
    targets: Vec<TargetTally>,
    retries: u64,
    cached: u64,
}

#[derive(Debug)]
struct TargetTally {
    cases: Vec<CaseCounts>,
    errors_by_kind: BTreeMap<String, u64>,
    usage: Usage,
    cost: NanoDollars,
    unpriced: u64,
    latencies_ms: Vec<u32>,
}

impl Aggregate {
    /// Nothing yet.
    pub fn new(measure: Measure) -> Aggregate {
        let targets = measure
            .targets
            .iter()
            .map(|_| TargetTally {
                cases: vec![CaseCounts::default(); measure.cases.len()],
                errors_by_kind: BTreeMap::new(),
                usage: Usage::default(),
                cost: NanoDollars::default(),
                unpriced: 0,
                latencies_ms: Vec::new(),
            })
            .collect();
        Aggregate { measure, targets, retries: 0, cached: 0 }
    }

    /// Counts a result. One that belongs to no planned trial is left out.
    pub fn add(&mut self, result: &TrialResult) {
        let target = self.measure.targets.iter().position(|(name, _)| *name == result.key.target);
        let case = self.measure.cases.position(result.key.case.as_str());
        let (Some(target), Some(case)) = (target, case) else { return };
        let tally = &mut self.targets[target];
        let case = &mut tally.cases[case];
        let attempt = &result.attempt;
        match result.status {
            Status::Passed => case.passed += 1,
            Status::Failed => case.failed += 1,
            Status::Error => case.errors += 1,
            // As if it had never come.
            Status::Skipped => {}
        }
        if let Some(score) = result.score {
            case.score_millionths += (score.clamp(0.0, 1.0) * 1e6).round() as u64;
        }
        if let Some(usage) = attempt.usage {
            case.has_usage = true;
            case.input_tokens = case.input_tokens.saturating_add(usage.prompt());
            case.output_tokens = case.output_tokens.saturating_add(usage.output);
            tally.usage += usage;
        }
        match attempt.cost {
            Some(cost) => tally.cost += cost,
            None if attempt.usage.is_some() => tally.unpriced += 1,
            None => {}
        }
        if let Some(error) = &attempt.error {
            let kind = serde_json::to_value(error.kind).ok();
            let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("other").to_owned();
            *tally.errors_by_kind.entry(kind).or_default() += 1;
        } else if !attempt.cached {
            tally.latencies_ms.push(u32::try_from(attempt.timing.latency_ms).unwrap_or(u32::MAX));
        }
        self.retries += u64::from(attempt.timing.retries);
        self.cached += u64::from(attempt.cached);
    }

    /// What can be said now. `stats` brings the times; the rest of it is filled in.
    pub fn summary(mut self, run_id: &RunId, suite: &str, stats: RunStats) -> Summary {
        let mut stats = RunStats { retries: self.retries, cached: self.cached, ..stats };
        for ((name, _), tally) in self.measure.targets.iter().zip(&mut self.targets) {
            tally.latencies_ms.sort_unstable();
            let quantile = |share: f64| {
                let last = tally.latencies_ms.len().checked_sub(1)?;
                tally.latencies_ms.get((last as f64 * share).round() as usize).copied()
            };
            if let (Some(median), Some(p95)) = (quantile(0.5), quantile(0.95)) {
                stats.latency_p50_ms.insert(name.clone(), median.into());
                stats.latency_p95_ms.insert(name.clone(), p95.into());
            }
        }
        let targets: Vec<TargetSummary> = std::mem::take(&mut self.targets)
            .into_iter()
            .zip(&self.measure.targets)
            .map(|(tally, (name, gate))| self.measure.target(name, *gate, tally))
            .collect();
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

impl Measure {
    fn target(&self, name: &TargetName, gate: bool, mut tally: TargetTally) -> TargetSummary {
        let planned = u64::from(self.trials);
        for case in &mut tally.cases {
            case.status =
                match self.threshold.decide(case.passed.into(), case.failed.into(), planned) {
                    Decision::Passed => Some(Status::Passed),
                    Decision::Failed => Some(Status::Failed),
                    Decision::Open => None,
                };
        }
        let total_cases = tally.cases.len() as u64;
        let with = |status| tally.cases.iter().filter(|case| case.status == status).count() as u64;
        let sum = |part: fn(&CaseCounts) -> u32| {
            tally.cases.iter().map(|case| u64::from(part(case))).sum::<u64>()
        };
        let (passed, failed) = (with(Some(Status::Passed)), with(Some(Status::Failed)));
        let needed = self.suite_threshold.unwrap_or(Threshold::ALL);
        let verdict = match needed.decide(passed, failed, total_cases) {
            Decision::Passed => Verdict::Passed,
            Decision::Failed => Verdict::Failed,
            Decision::Open => Verdict::Inconclusive,
        };
        let estimate =
            mean_pass_rate(tally.cases.iter().map(|case| CaseRate {
                passed: case.passed.into(),
                counted: case.counted().into(),
            }));
        let total_trials = total_cases * planned;
        TargetSummary {
            target: name.clone(),
            gate,
            verdict,
            suite_pass: verdict == Verdict::Passed,
            suite_pass_rate: passed as f64 / total_cases.max(1) as f64,
            total_cases,
            passed,
            failed,
            inconclusive: with(None),
            trials_per_case: self.trials,
            pass_threshold: self.threshold.as_f64(),
            total_trials,
            pass_count: sum(|case| case.passed),
            counted: sum(CaseCounts::counted),
            errors: sum(|case| case.errors),
            errors_by_kind: tally.errors_by_kind,
            // Trials that never came are as good as skipped.
            skipped: total_trials.saturating_sub(sum(|case| case.counted() + case.errors)),
            mean_pass_rate: estimate.map(|estimate| estimate.mean),
            interval: estimate.map(|estimate| Interval {
                low: estimate.interval.low,
                high: estimate.interval.high,
            }),
            usage: tally.usage,
            cost_nanodollars: tally.cost,
            unpriced: tally.unpriced,
            cases: CaseList::new(Arc::clone(&self.cases), tally.cases, self.trials),
        }
    }
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
        assert_eq!(forward.stats.latency_p50_ms[&"one".into()], 2);
    }
}
