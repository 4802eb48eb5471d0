//! Comparison of targets over the same cases, paired by case.

use crate::{ComparedTarget, Error};
use bakeoff_core::{
    CaseChange, CaseCounts, Comparison, ComparisonMetric, Equivalence, Finding, Interval,
    RequiredCases, Score, Side, Status, TargetSummary, UnpairedCases,
};
use bakeoff_stats::{
    PairedDifferences, SignFlip, binary_cases_needed, bonett_price, cases_needed,
    detectable_difference, geometric_ratio, holm, mcnemar, total_ratio,
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

/// Compares each candidate with the baseline. P-values are adjusted for their number (Holm 1979).
///
/// # Errors
///
/// When a candidate shares no case with the baseline.
pub fn compare(
    baseline: ComparedTarget<'_>,
    candidates: &[ComparedTarget<'_>],
    config: CompareConfig,
) -> Result<Vec<Comparison>, Error> {
    let mut found: Vec<Comparison> = candidates
        .iter()
        .map(|candidate| compare_pair(baseline, *candidate, config))
        .collect::<Result<_, Error>>()?;
    let p_values: Vec<f64> = found.iter().map(|comparison| comparison.p_value).collect();
    for (comparison, adjusted) in found.iter_mut().zip(holm(&p_values)) {
        comparison.adjusted_p_value = adjusted;
        comparison.finding = match comparison.difference {
            _ if adjusted > config.alpha => Finding::NoDifference,
            difference if difference < 0.0 => Finding::Worse,
            difference if difference > 0.0 => Finding::Better,
            _ => Finding::NoDifference,
        };
    }
    Ok(found)
}

/// Values of a case for both targets.
struct PairedCase<'a> {
    id: &'a str,
    /// Pass rates or verdicts.
    values: (f64, f64),
    costs: (f64, f64),
}

fn compare_pair(
    baseline: ComparedTarget<'_>,
    candidate: ComparedTarget<'_>,
    config: CompareConfig,
) -> Result<Comparison, Error> {
    let is_early = baseline.target.stopped_early + candidate.target.stopped_early > 0;
    let by = if is_early { ComparisonMetric::Verdicts } else { ComparisonMetric::Rates };
    let (cases, only_baseline, only_candidate) = pair_cases(baseline.target, candidate.target, by);
    let differences: Vec<f64> = cases.iter().map(|case| case.values.1 - case.values.0).collect();
    let Some(flips) = SignFlip::new(&differences, config.seed) else {
        return Err(Error::Usage {
            message: format!(
                "{}:{} and {}:{} have no case with a passed or failed trial in both",
                baseline.summary.run_id,
                baseline.target.target,
                candidate.summary.run_id,
                candidate.target.target
            ),
            hint: Some("cases are paired by their ids".to_owned()),
        });
    };
    let count = cases.len() as u64;
    let mean =
        |side: fn(&PairedCase<'_>) -> f64| cases.iter().map(side).sum::<f64>() / count as f64;
    let gained = differences.iter().filter(|difference| **difference > 0.0).count() as u64;
    let lost = differences.iter().filter(|difference| **difference < 0.0).count() as u64;
    let is_binary = differences.iter().all(|difference| [-1.0, 0.0, 1.0].contains(difference));
    let paired = PairedDifferences::new(&differences);
    // Differences that are all equal say nothing about other cases.
    let deviation = paired.map(|paired| paired.deviation()).filter(|deviation| *deviation > 0.0);
    let (p_value, test, interval) = if is_binary {
        let interval = bonett_price(gained, lost, count);
        (mcnemar(gained, lost), "McNemar, exact".to_owned(), Some(interval))
    } else {
        let test = match flips.is_exact() {
            true => "exact sign-flip test",
            false => "sign-flip test with 9,999 random flips",
        };
        (flips.p_value(), test.to_owned(), flips.interval(config.alpha))
    };
    let discordant = (gained + lost) as f64 / count as f64;
    let needed = if is_binary {
        binary_cases_needed(config.detect, discordant)
    } else {
        deviation.and_then(|deviation| cases_needed(config.detect, deviation))
    };
    let costs: Vec<(f64, f64)> = cases.iter().map(|case| case.costs).collect();
    let side = |compared: ComparedTarget<'_>, mean: f64| Side {
        run_id: compared.summary.run_id.clone(),
        target: compared.target.target.clone(),
        mean,
    };
    Ok(Comparison {
        baseline: side(baseline, mean(|case| case.values.0)),
        candidate: side(candidate, mean(|case| case.values.1)),
        cases: count,
        only_baseline,
        only_candidate,
        by,
        difference: flips.mean(),
        interval: interval.map(|found| Interval {
            // Rates differ by at most 1.
            low: found.low.max(-1.0),
            high: found.high.min(1.0),
        }),
        p_value,
        adjusted_p_value: p_value,
        test,
        finding: Finding::NoDifference,
        effect: paired.and_then(|paired| paired.effect()),
        gained,
        lost,
        detectable: deviation.and_then(|deviation| detectable_difference(deviation, count)),
        needed: needed.map(|cases| RequiredCases { difference: config.detect, cases }),
        equivalence: config.within.map(|margin| match paired {
            Some(paired) if !is_binary && deviation.is_some() => {
                let p_value = paired.equivalence(margin);
                let is_equivalent = p_value <= config.alpha;
                Equivalence { margin, p_value: Some(p_value), is_equivalent }
            }
            _ => {
                let found = bonett_price(gained, lost, count);
                let is_equivalent = found.low > -margin && found.high < margin;
                Equivalence { margin, p_value: None, is_equivalent }
            }
        }),
        cost_ratio: geometric_ratio(&costs).and_then(|ratio| {
            let found = ratio.interval?;
            let interval = Interval { low: found.low, high: found.high };
            Some(Score { mean: ratio.value, interval })
        }),
        total_cost_ratio: total_ratio(&costs, config.seed).map(|ratio| ratio.value),
        changes: changes(&cases),
    })
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
                let costs = (counts.cost.as_dollars(), other.cost.as_dollars());
                cases.push(PairedCase { id, values: (one, two), costs });
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
