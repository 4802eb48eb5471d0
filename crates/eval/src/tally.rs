//! Summary of one target from the numbers of its trials.

use crate::aggregate::{RunCriteria, TrialNumbers};
use crate::stopping::{CaseRules, CaseState, TargetRule, TrialCounts, TrialMark};
use crate::trial_plan::{TrialPlan, TrialRule};
use crate::verdict_rule::{CaseNumbers, ScoreRule, describe_target, score_verdict};
use bakeoff_core::{
    CaseCounts, CaseList, ErrorKind, Interval, NanoDollars, PassK, RunStats, Score, Status,
    TargetName, TargetSummary, TrueRate, Usage, Verdict,
};
use bakeoff_stats::{
    CaseRate, Decision, RateEvidence, Threshold, confidence_sequence, flake_rate, mean_pass_rate,
    mean_score, pass_at_k, pass_hat_k, quantile_rank, wilson,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Values of k for which pass@k and pass^k are reported, besides the number of trials.
const REPORTED_K: [u32; 4] = [2, 3, 5, 10];

/// Level of all intervals and of statements about true rates.
const ALPHA: f64 = 0.05;

/// All trials of one target.
pub(crate) struct TargetTrials<'a> {
    pub(crate) criteria: &'a RunCriteria,
    pub(crate) trials: &'a [TrialNumbers],
    pub(crate) case_rules: &'a CaseRules,
}

impl TargetTrials<'_> {
    /// Summarizes the trials of the target with that index.
    pub(crate) fn summary(
        &self,
        target: usize,
        target_rule: &TargetRule,
        stats: &mut RunStats,
    ) -> TargetSummary {
        let (name, gate) = &self.criteria.targets[target];
        let plan = &self.criteria.plan;
        let states: Vec<CaseState> = (0..plan.cases()).map(|case| self.state(case)).collect();
        let decided = target_rule.read(&states);
        let unneeded: HashSet<u32> = decided.unneeded.iter().copied().collect();
        let mut tally = TargetTally::default();
        for (index, (range, state)) in (0..).zip(plan.ranges().zip(&states)) {
            let case = &self.trials[range];
            let counting = match state.decided_by {
                _ if unneeded.contains(&index) => 0,
                Some(first) => first.total() as usize,
                None => case.len(),
            };
            tally.add_case(case, counting, *state, plan.rule(index as usize), plan.default());
        }
        let case_verdict = match decided.decision {
            Decision::Passed => Verdict::Passed,
            Decision::Failed => Verdict::Failed,
            Decision::Open => Verdict::Inconclusive,
        };
        let score = tally.score();
        let score_rule = self.criteria.min_score.map(|min| ScoreRule {
            mean: score.map(|score| score.mean),
            min,
            verdict: tally.score_verdict(min),
        });
        let verdict = score_rule.map_or(case_verdict, |rule| case_verdict.worst(rule.verdict));
        tally.move_timings(name, stats, plan);
        let errors_by_kind = std::mem::take(&mut tally.errors_by_kind);
        let total_cases = tally.cases.len() as u64;
        let with = |status| tally.cases.iter().filter(|case| case.status == status).count() as u64;
        let sum = |part: fn(&CaseCounts) -> u32| {
            tally.cases.iter().map(|case| u64::from(part(case))).sum::<u64>()
        };
        let (passed, failed) = (with(Some(Status::Passed)), with(Some(Status::Failed)));
        let stopped_early = tally.cases.iter().filter(|case| case.stopped_early).count() as u64;
        let estimate = mean_pass_rate(tally.cases.iter().map(rate));
        let total_trials = plan.total() as u64;
        let executed = sum(|case| case.counted() + case.errors);
        let skipped = total_trials.saturating_sub(executed);
        let needless = unneeded.len() as u64;
        let inconclusive = with(None) - needless;
        let needed = total_cases - needless;
        let numbers = CaseNumbers { passed, inconclusive, needed, needless, verdict: case_verdict };
        TargetSummary {
            target: name.clone(),
            gate: *gate,
            verdict,
            rule: describe_target(self.criteria, numbers, score_rule),
            suite_pass: verdict == Verdict::Passed,
            suite_pass_rate: passed as f64 / needed.max(1) as f64,
            total_cases,
            passed,
            failed,
            inconclusive,
            trials_per_case: plan.default().trials,
            pass_threshold: plan.default().threshold.as_f64(),
            total_trials,
            pass_count: sum(|case| case.passed),
            counted: sum(CaseCounts::counted),
            errors: sum(|case| case.errors),
            errors_by_kind,
            skipped,
            saved: tally.saved,
            stopped_early,
            needless,
            flaky: tally.cases.iter().filter(|case| case.passed > 0 && case.failed > 0).count()
                as u64,
            mean_pass_rate: estimate.map(|estimate| estimate.mean),
            interval: estimate.map(|estimate| interval(estimate.interval)),
            graded: tally.is_graded,
            min_score: self.criteria.min_score,
            score,
            pass_k: if stopped_early == 0 { tally.pass_k(plan) } else { Vec::new() },
            usage: tally.usage,
            cost_nanodollars: tally.cost,
            judge_cost_nanodollars: tally.judge_cost,
            unpriced: tally.unpriced,
            cases: self.case_list(tally.cases, tally.statuses),
        }
    }

    fn case_list(&self, cases: Vec<CaseCounts>, statuses: Vec<Status>) -> CaseList {
        let list = CaseList::new(Arc::clone(&self.criteria.cases), cases, statuses);
        if self.criteria.has_planned_rates { list.with_planned_rates() } else { list }
    }

    fn state(&self, case: usize) -> CaseState {
        let trials = &self.trials[self.criteria.plan.range(case)];
        let marks: Vec<TrialMark> = trials.iter().map(|trial| trial.mark).collect();
        self.case_rules.of(case).read(&marks)
    }
}

/// Sums over the trials of one target that count.
#[derive(Default)]
struct TargetTally {
    cases: Vec<CaseCounts>,
    statuses: Vec<Status>,
    errors_by_kind: BTreeMap<String, u64>,
    usage: Usage,
    cost: Option<NanoDollars>,
    judge_cost: NanoDollars,
    unpriced: u64,
    saved: u64,
    is_graded: bool,
    latencies_ms: Vec<u32>,
    case_latency_ms: Vec<Option<[u32; 2]>>,
    retries: u64,
    cached: u64,
    surplus: u64,
    surplus_cost: NanoDollars,
}

impl TargetTally {
    /// Adds a case of which the first `counting` trials count.
    fn add_case(
        &mut self,
        trials: &[TrialNumbers],
        counting: usize,
        state: CaseState,
        rule: TrialRule,
        default: TrialRule,
    ) {
        let mut counts = TrialCounts::default();
        let mut case = CaseCounts {
            status: match state.decision {
                Decision::Passed if counting > 0 => Some(Status::Passed),
                Decision::Failed if counting > 0 => Some(Status::Failed),
                _ => None,
            },
            stopped_early: counting > 0 && counting < trials.len(),
            planned: rule.trials,
            own_threshold: (rule.threshold != default.threshold).then(|| rule.threshold.as_f64()),
            ..CaseCounts::default()
        };
        let mut latencies = Vec::new();
        for (number, trial) in trials.iter().enumerate() {
            let is_counted = number < counting && trial.mark != TrialMark::Missing;
            self.statuses.push(match trial.mark {
                TrialMark::Passed if is_counted => Status::Passed,
                TrialMark::Failed if is_counted => Status::Failed,
                TrialMark::Error if is_counted => Status::Error,
                _ => Status::Skipped,
            });
            if is_counted {
                counts.add(trial.mark);
                self.add_trial(trial, &mut case);
                latencies.extend(trial.latency_ms);
            } else if trial.mark != TrialMark::Missing {
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
        add_estimates(&mut case, rule.threshold);
        self.cases.push(case);
    }

    fn add_trial(&mut self, trial: &TrialNumbers, case: &mut CaseCounts) {
        case.score_millionths += u64::from(trial.score_millionths.unwrap_or_default());
        self.is_graded |= trial.is_graded;
        if let Some(usage) = trial.usage {
            case.has_usage = true;
            case.input_tokens = case.input_tokens.saturating_add(usage.prompt());
            case.output_tokens = case.output_tokens.saturating_add(usage.output);
            self.usage += usage;
        }
        match trial.cost {
            Some(cost) => {
                *case.cost.get_or_insert_default() += cost;
                *self.cost.get_or_insert_default() += cost;
            }
            None if trial.usage.is_some() => self.unpriced += 1,
            None => {}
        }
        self.judge_cost += trial.judge_cost;
        if let Some(commands) = trial.commands {
            *case.commands.get_or_insert_default() += u64::from(commands);
        }
        if let Some(kind) = trial.error {
            *self.errors_by_kind.entry(kind_name(kind)).or_default() += 1;
        }
        self.retries += u64::from(trial.retries);
        self.cached += u64::from(trial.is_cached);
    }

    /// Returns the mean score over the cases.
    fn score(&self) -> Option<Score> {
        let counted = self.cases.iter().filter(|case| case.counted() > 0);
        let scores: Vec<f64> = counted
            .map(|case| case.score_millionths as f64 / 1e6 / f64::from(case.counted()))
            .collect();
        over_cases(&scores)
    }

    /// Returns the verdict over the mean score: certain if missing trials cannot change it.
    fn score_verdict(&self, min: f64) -> Verdict {
        let (mut lowest, mut highest) = (0.0, 0.0);
        for case in &self.cases {
            let (planned, counted) = (case.planned.max(1), case.counted());
            let missing = f64::from(planned.saturating_sub(counted));
            let sum = case.score_millionths as f64 / 1e6;
            lowest += sum / f64::from(planned);
            highest += (sum + missing) / f64::from(planned);
        }
        let cases = self.cases.len().max(1) as f64;
        score_verdict(lowest / cases, highest / cases, min)
    }

    /// Returns pass@k and pass^k over the cases with at least k trials.
    fn pass_k(&self, plan: &TrialPlan) -> Vec<PassK> {
        let reported: BTreeSet<u32> =
            REPORTED_K.into_iter().chain([plan.default().trials]).collect();
        let mean =
            |k: u32, chance: fn(u64, u64, u64) -> Option<bakeoff_stats::ProbabilityEstimate>| {
                let of =
                    |case: &CaseCounts| chance(case.passed.into(), case.counted().into(), k.into());
                let values: Vec<f64> =
                    self.cases.iter().filter_map(of).map(|chance| chance.value).collect();
                (values.len() > 1).then(|| over_cases(&values)).flatten()
            };
        reported
            .into_iter()
            .filter(|k| (2..=plan.max_trials()).contains(k))
            .filter_map(|k| Some(PassK { k, any: mean(k, pass_at_k)?, all: mean(k, pass_hat_k)? }))
            .collect()
    }

    /// Moves values that depend on the clock to the run's statistics.
    fn move_timings(&mut self, name: &TargetName, stats: &mut RunStats, plan: &TrialPlan) {
        self.latencies_ms.sort_unstable();
        let at = |share| quantile(&self.latencies_ms, share);
        if let (Some(median), Some(p95)) = (at(0.5), at(0.95)) {
            stats.latency_p50_ms.insert(name.clone(), median.into());
            stats.latency_p95_ms.insert(name.clone(), p95.into());
        }
        if plan.max_trials() > 1 {
            let by_case = std::mem::take(&mut self.case_latency_ms);
            stats.case_latency_ms.insert(name.clone(), by_case);
        }
        stats.retries += self.retries;
        stats.cached += self.cached;
        stats.surplus += self.surplus;
        stats.surplus_cost_nanodollars += self.surplus_cost;
    }
}

/// Adds the interval, flake rate and true rate of a case.
fn add_estimates(case: &mut CaseCounts, threshold: Threshold) {
    let (passed, failed) = (u64::from(case.passed), u64::from(case.failed));
    let counted = passed + failed;
    if counted == 0 {
        return;
    }
    let rate_interval = if case.stopped_early {
        confidence_sequence(passed, failed, ALPHA)
    } else {
        wilson(passed, counted)
    };
    case.interval = Some(interval(rate_interval));
    case.flake_rate = flake_rate(rate(case));
    let evidence = RateEvidence::new(passed, failed, threshold.as_f64());
    case.true_rate = match evidence.true_rate(ALPHA) {
        bakeoff_stats::TrueRate::Above => TrueRate::Above,
        bakeoff_stats::TrueRate::Below => TrueRate::Below,
        bakeoff_stats::TrueRate::Unresolved => TrueRate::Unresolved,
    };
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

fn interval(found: bakeoff_stats::Interval) -> Interval {
    Interval { low: found.low, high: found.high }
}

/// Returns the name of an error kind in files.
pub(crate) fn kind_name(kind: ErrorKind) -> String {
    let kind = serde_json::to_value(kind).ok();
    kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("other").to_owned()
}
