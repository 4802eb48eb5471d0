//! Comparison of targets over the same cases, paired by case.

use crate::paired_test::PairedTest;
use crate::{ComparedTarget, Error, TargetPair};
use bakeoff_core::{
    CaseChange, CaseCounts, Comparison, ComparisonMetric, Equivalence, Interval, NanoDollars,
    RequiredCases, Score, ScoreComparison, Side, Status, TargetSummary, UnpairedCases,
};
use bakeoff_stats::{
    PairedDifferences, binary_cases_needed, cases_needed, detectable_difference, geometric_ratio,
    holm, holm_levels, total_ratio,
};
use std::collections::HashMap;

/// Cases that a comparison lists.
const MAX_LISTED_CASES: usize = 10;

/// Settings of a comparison.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CompareConfig {
    /// Significance level.
    pub alpha: f64,
    /// Difference for which the number of required cases is reported.
    pub detect: f64,
    /// Margin of an equivalence test, if one is wanted.
    pub within: Option<f64>,
    /// Seed of randomized tests.
    pub seed: u64,
}

impl Default for CompareConfig {
    fn default() -> CompareConfig {
        CompareConfig { alpha: 0.05, detect: 0.05, within: None, seed: 0 }
    }
}

/// Compares each pair. P-values and intervals are adjusted for the number of pairs (Holm 1979).
///
/// The interval of a pair has the level at which Holm's method compares its p-value, so that it excludes 0
/// exactly if there is a finding.
///
/// # Errors
///
/// When the targets of a pair share no case.
pub fn compare(pairs: &[TargetPair<'_>], config: CompareConfig) -> Result<Vec<Comparison>, Error> {
    let paired: Vec<PairedOutcomes<'_>> =
        pairs.iter().map(|pair| PairedOutcomes::new(*pair, config)).collect::<Result<_, _>>()?;
    let rates: Vec<&PairedTest> = paired.iter().map(|paired| &paired.test).collect();
    // Scores are a family of their own, so that graded checks do not change what is found about rates.
    let scores: Vec<&PairedTest> =
        paired.iter().filter_map(|paired| paired.scores.as_ref()).collect();
    let mut scores = adjust(&scores, config.alpha).into_iter();
    let comparison = |(paired, (adjusted_p_value, level)): (&PairedOutcomes<'_>, (f64, f64))| {
        let scores = paired.scores.as_ref().zip(paired.scores.as_ref().and_then(|_| scores.next()));
        Comparison {
            adjusted_p_value,
            scores: scores.map(|(test, (adjusted_p_value, level))| {
                paired.score_comparison(test, adjusted_p_value, level)
            }),
            ..paired.comparison(level, config)
        }
    };
    Ok(paired.iter().zip(adjust(&rates, config.alpha)).map(comparison).collect())
}

/// Returns the adjusted p-value and the level of each test.
fn adjust(tests: &[&PairedTest], alpha: f64) -> Vec<(f64, f64)> {
    let p_values: Vec<f64> = tests.iter().map(|test| test.p_value()).collect();
    holm(&p_values).into_iter().zip(holm_levels(&p_values, alpha)).collect()
}

/// Returns the mean score of the judged trials of a case, of which there is at least one.
fn mean_score(case: &CaseCounts) -> f64 {
    case.score_millionths as f64 / 1e6 / f64::from(case.counted())
}

/// Values of a case for both targets.
struct PairedCase<'a> {
    id: &'a str,
    /// Pass rates or verdicts.
    values: (f64, f64),
    /// Counts of the trials.
    counts: (&'a CaseCounts, &'a CaseCounts),
}

/// Cases that both targets of a pair have, with the test of their differences.
struct PairedOutcomes<'a> {
    pair: TargetPair<'a>,
    by: ComparisonMetric,
    cases: Vec<PairedCase<'a>>,
    only_baseline: UnpairedCases,
    only_candidate: UnpairedCases,
    /// Test of the differences of `values`.
    test: PairedTest,
    /// Test of the differences of scores, if there are graded checks.
    scores: Option<PairedTest>,
}

impl<'a> PairedOutcomes<'a> {
    fn new(pair: TargetPair<'a>, config: CompareConfig) -> Result<PairedOutcomes<'a>, Error> {
        let (baseline, candidate) = (pair.baseline.target, pair.candidate.target);
        let is_early = baseline.stopped_early + candidate.stopped_early > 0;
        let by = if is_early { ComparisonMetric::Verdicts } else { ComparisonMetric::Rates };
        let (cases, only_baseline, only_candidate) = pair_cases(baseline, candidate, by);
        let differences: Vec<f64> =
            cases.iter().map(|case| case.values.1 - case.values.0).collect();
        let Some(test) = PairedTest::new(differences, config.seed) else {
            return Err(Error::Usage {
                message: format!(
                    "{}:{} and {}:{} have no case with a passed or failed trial in both",
                    pair.baseline.summary.run_id,
                    baseline.target,
                    pair.candidate.summary.run_id,
                    candidate.target
                ),
                hint: Some("cases are paired by their ids".to_owned()),
            });
        };
        let has_scores = (baseline.graded || candidate.graded)
            // Runs of older versions have no scores.
            && baseline.score.is_some()
            && candidate.score.is_some()
            // Like their rates, the scores of cases that were stopped early are biased.
            && by == ComparisonMetric::Rates;
        let differences =
            || cases.iter().map(|case| mean_score(case.counts.1) - mean_score(case.counts.0));
        let scores = has_scores.then(|| PairedTest::new(differences().collect(), config.seed));
        Ok(PairedOutcomes {
            scores: scores.flatten(),
            test,
            pair,
            by,
            cases,
            only_baseline,
            only_candidate,
        })
    }

    /// Returns the comparison of scores at a level that is adjusted for the number of such comparisons.
    fn score_comparison(
        &self,
        test: &PairedTest,
        adjusted_p_value: f64,
        level: f64,
    ) -> ScoreComparison {
        let count = self.cases.len() as f64;
        ScoreComparison {
            baseline: self.cases.iter().map(|case| mean_score(case.counts.0)).sum::<f64>() / count,
            candidate: self.cases.iter().map(|case| mean_score(case.counts.1)).sum::<f64>() / count,
            difference: test.mean(),
            interval: test.interval(level),
            level,
            p_value: test.p_value(),
            adjusted_p_value,
            test: test.name().to_owned(),
            finding: test.finding(level),
        }
    }

    /// Returns the comparison at a level that is adjusted for the number of comparisons.
    fn comparison(&self, level: f64, config: CompareConfig) -> Comparison {
        let count = self.cases.len() as u64;
        let test = &self.test;
        let p_value = test.p_value();
        let paired = PairedDifferences::new(&test.differences);
        // Differences that are all equal say nothing about other cases.
        let deviation =
            paired.map(|paired| paired.deviation()).filter(|deviation| *deviation > 0.0);
        let needed = if test.is_binary {
            let discordant = (test.gained + test.lost) as f64 / count as f64;
            binary_cases_needed(config.detect, discordant)
        } else {
            deviation.and_then(|deviation| cases_needed(config.detect, deviation))
        };
        let costs = self.costs_per_trial().unwrap_or_default();
        Comparison {
            baseline: self.side(self.pair.baseline, |case| case.values.0, |case| case.counts.0),
            candidate: self.side(self.pair.candidate, |case| case.values.1, |case| case.counts.1),
            gate: self.pair.gate,
            cases: count,
            only_baseline: self.only_baseline.clone(),
            only_candidate: self.only_candidate.clone(),
            by: self.by,
            difference: test.mean(),
            interval: test.interval(level),
            level,
            p_value,
            adjusted_p_value: p_value,
            test: test.name().to_owned(),
            finding: test.finding(level),
            scores: None,
            effect: paired.and_then(|paired| paired.effect()),
            gained: test.gained,
            lost: test.lost,
            detectable: deviation.and_then(|deviation| detectable_difference(deviation, count)),
            needed: needed.map(|cases| RequiredCases { difference: config.detect, cases }),
            equivalence: config.within.map(|margin| self.equivalence(margin, config.alpha)),
            cost_ratio: geometric_ratio(&costs).and_then(|ratio| {
                let found = ratio.interval?;
                let interval = Interval { low: found.low, high: found.high };
                Some(Score { mean: ratio.value, interval })
            }),
            total_cost_ratio: total_ratio(&costs, config.seed).map(|ratio| ratio.value),
            changes: changes(&self.cases),
        }
    }

    fn equivalence(&self, margin: f64, alpha: f64) -> Equivalence {
        let paired = PairedDifferences::new(&self.test.differences);
        match paired.filter(|paired| !self.test.is_binary && paired.deviation() > 0.0) {
            Some(paired) => {
                let p_value = paired.equivalence(margin);
                Equivalence { margin, p_value: Some(p_value), is_equivalent: p_value <= alpha }
            }
            None => {
                let found = self.test.interval(alpha);
                let is_equivalent = found.low > -margin && found.high < margin;
                Equivalence { margin, p_value: None, is_equivalent }
            }
        }
    }

    /// Returns the mean cost of a trial for each case; absent if a cost is unknown.
    fn costs_per_trial(&self) -> Option<Vec<(f64, f64)>> {
        let (baseline, candidate) = (self.pair.baseline.target, self.pair.candidate.target);
        let per_trial = |case: &CaseCounts, target| {
            Some(known_cost(case, target)?.as_dollars() / executed(case) as f64)
        };
        self.cases
            .iter()
            .map(|case| {
                let (one, two) = case.counts;
                Some((per_trial(one, baseline)?, per_trial(two, candidate)?))
            })
            .collect()
    }

    fn side(
        &self,
        compared: ComparedTarget<'_>,
        value: fn(&PairedCase<'_>) -> f64,
        counts: fn(&PairedCase<'a>) -> &'a CaseCounts,
    ) -> Side {
        let (summary, target) = (compared.summary, compared.target);
        let counts = || self.cases.iter().map(counts);
        let cost = counts().try_fold(NanoDollars::default(), |sum, case| {
            Some(sum.saturating_add(known_cost(case, target)?))
        });
        let tokens = |case: &CaseCounts| {
            case.has_usage.then(|| case.input_tokens.saturating_add(case.output_tokens))
        };
        Side {
            run_id: summary.run_id.clone(),
            target: target.target.clone(),
            mean: self.cases.iter().map(value).sum::<f64>() / self.cases.len() as f64,
            trials: counts().map(executed).sum(),
            cost_nanodollars: cost,
            tokens: counts().map(tokens).sum(),
            latency_p50_ms: summary.stats.latency_p50_ms.get(&target.target).copied(),
        }
    }
}

/// Returns the number of trials that were run.
fn executed(case: &CaseCounts) -> u64 {
    u64::from(case.counted() + case.errors)
}

/// Returns the cost of a case; absent if its target has trials without a price, or none with a cost.
fn known_cost(case: &CaseCounts, target: &TargetSummary) -> Option<NanoDollars> {
    case.cost.filter(|_| target.unpriced == 0)
}

/// Returns the cases of both targets, and those of only one.
fn pair_cases<'a>(
    baseline: &'a TargetSummary,
    candidate: &'a TargetSummary,
    by: ComparisonMetric,
) -> (Vec<PairedCase<'a>>, UnpairedCases, UnpairedCases) {
    let mut others: HashMap<&str, &CaseCounts> = candidate.cases.counts().collect();
    let (mut cases, mut only_baseline) = (Vec::new(), UnpairedCases::default());
    for (id, counts) in baseline.cases.counts() {
        let other = others.get(id).copied();
        let judged = (value(counts, by), other.and_then(|other| value(other, by)));
        match (judged, other) {
            ((Some(one), Some(two)), Some(other)) => {
                cases.push(PairedCase { id, values: (one, two), counts: (counts, other) });
                others.remove(id);
            }
            ((Some(_), None), _) => add_unpaired(&mut only_baseline, id),
            _ => {}
        }
    }
    let mut only_candidate = UnpairedCases::default();
    let judged = candidate.cases.counts().filter(|(_, case)| value(case, by).is_some());
    let left = judged.filter(|(id, _)| others.contains_key(id));
    left.for_each(|(id, _)| add_unpaired(&mut only_candidate, id));
    (cases, only_baseline, only_candidate)
}

fn add_unpaired(unpaired: &mut UnpairedCases, id: &str) {
    unpaired.count += 1;
    if unpaired.first.len() < MAX_LISTED_CASES {
        unpaired.first.push(id.into());
    }
}

fn value(case: &CaseCounts, by: ComparisonMetric) -> Option<f64> {
    match by {
        ComparisonMetric::Rates => {
            let counted = case.counted();
            (counted > 0).then(|| f64::from(case.passed) / f64::from(counted))
        }
        ComparisonMetric::Verdicts => match case.status? {
            Status::Passed => Some(1.0),
            Status::Failed => Some(0.0),
            Status::Error | Status::Skipped => None,
        },
    }
}

/// Returns the cases that differ most, losses first.
fn changes(cases: &[PairedCase<'_>]) -> Vec<CaseChange> {
    let mut changed: Vec<&PairedCase<'_>> =
        cases.iter().filter(|case| case.values.0 != case.values.1).collect();
    changed.sort_by(|one, other| {
        let difference = |case: &PairedCase<'_>| case.values.1 - case.values.0;
        difference(one)
            .abs()
            .total_cmp(&difference(other).abs())
            .reverse()
            .then(difference(one).total_cmp(&difference(other)))
    });
    changed
        .into_iter()
        .take(MAX_LISTED_CASES)
        .map(|case| CaseChange {
            case: case.id.into(),
            baseline: case.values.0,
            candidate: case.values.1,
        })
        .collect()
}
