//! Two targets over the same cases, paired by case.

use crate::Error;
use bakeoff_core::{
    CaseChange, CaseCounts, Comparison, ComparisonMetric, Equivalence, Finding, Interval,
    RequiredCases, Score, Side, Status, Summary, TargetSummary, UnpairedCases,
};
use bakeoff_stats::{
    PairedDifferences, SignFlip, binary_cases_needed, bonett_price, cases_needed,
    detectable_difference, geometric_ratio, holm, mcnemar, total_ratio,
};
use std::collections::HashMap;

/// Cases that are named.
const SHOWN: usize = 10;

/// What a comparison is asked.
#[derive(Debug, Clone, Copy)]
pub struct CompareConfig {
    /// The level of tests.
    pub alpha: f64,
    /// Say how many cases a difference of this size needs.
    pub detect: f64,
    /// Say whether the two are equal within this margin.
    pub within: Option<f64>,
    /// For the tests that draw.
    pub seed: u64,
}

impl Default for CompareConfig {
    fn default() -> CompareConfig {
        CompareConfig { alpha: 0.05, detect: 0.05, within: None, seed: 0 }
    }
}

/// One target of one run.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The run.
    pub summary: &'a Summary,
    /// Its target.
    pub target: &'a TargetSummary,
}

impl<'a> Compared<'a> {
    /// A target of a run; its only one when none is named.
    pub fn find(summary: &'a Summary, target: Option<&str>) -> Result<Compared<'a>, Error> {
        let names: Vec<&str> =
            summary.targets.iter().map(|target| target.target.as_str()).collect();
        let usage =
            |message: String, hint: Option<String>| Err(Error::Usage { code: None, message, hint });
        let found = match target {
            Some(name) => summary.targets.iter().find(|target| target.target == name),
            None if names.len() == 1 => summary.targets.first(),
            None => {
                return usage(
                    format!("{} has {} targets", summary.run_id, names.len()),
                    Some(format!("write RUN:TARGET with one of {}", names.join(", "))),
                );
            }
        };
        match (found, target) {
            (Some(target), _) => Ok(Compared { summary, target }),
            (None, name) => usage(
                format!("{} has no target `{}`", summary.run_id, name.unwrap_or_default()),
                crate::problem::suggest(name.unwrap_or_default(), names),
            ),
        }
    }
}

/// Compares each candidate with the baseline. P-values are adjusted for their number (Holm 1979).
pub fn compare(
    baseline: Compared<'_>,
    candidates: &[Compared<'_>],
    config: CompareConfig,
) -> Result<Vec<Comparison>, Error> {
    let mut found: Vec<Comparison> = candidates
        .iter()
        .map(|candidate| pair(baseline, *candidate, config))
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

/// What both targets have of a case.
struct Case<'a> {
    id: &'a str,
    /// Rates or verdicts.
    values: (f64, f64),
    costs: (f64, f64),
}

fn pair(
    baseline: Compared<'_>,
    candidate: Compared<'_>,
    config: CompareConfig,
) -> Result<Comparison, Error> {
    let is_early = baseline.target.stopped_early + candidate.target.stopped_early > 0;
    let by = if is_early { ComparisonMetric::Verdicts } else { ComparisonMetric::Rates };
    let (cases, only_baseline, only_candidate) = shared(baseline.target, candidate.target, by);
    let differences: Vec<f64> = cases.iter().map(|case| case.values.1 - case.values.0).collect();
    let Some(flips) = SignFlip::new(&differences, config.seed) else {
        return Err(Error::Usage {
            code: None,
            message: format!(
                "{}:{} and {}:{} have no case with a judged trial in both",
                baseline.summary.run_id,
                baseline.target.target,
                candidate.summary.run_id,
                candidate.target.target
            ),
            hint: Some("cases are paired by their ids".to_owned()),
        });
    };
    let count = cases.len() as u64;
    let mean = |side: fn(&Case<'_>) -> f64| cases.iter().map(side).sum::<f64>() / count as f64;
    let gained = differences.iter().filter(|difference| **difference > 0.0).count() as u64;
    let lost = differences.iter().filter(|difference| **difference < 0.0).count() as u64;
    let is_binary = differences.iter().all(|difference| [-1.0, 0.0, 1.0].contains(difference));
    let paired = PairedDifferences::new(&differences);
    // Differences that are all equal say nothing about cases that are not there.
    let deviation = paired.map(|paired| paired.deviation()).filter(|deviation| *deviation > 0.0);
    let (p_value, test, interval) = if is_binary {
        let interval = bonett_price(gained, lost, count);
        (mcnemar(gained, lost), "McNemar, exact".to_owned(), Some(interval))
    } else {
        let kind = if flips.is_exact() { "all of them" } else { "9,999 drawn" };
        (flips.p_value(), format!("sign flips, {kind}"), flips.interval(config.alpha))
    };
    let discordant = (gained + lost) as f64 / count as f64;
    let needed = if is_binary {
        binary_cases_needed(config.detect, discordant)
    } else {
        deviation.and_then(|deviation| cases_needed(config.detect, deviation))
    };
    let costs: Vec<(f64, f64)> = cases.iter().map(|case| case.costs).collect();
    let side = |compared: Compared<'_>, mean: f64| Side {
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
            // Rates cannot differ by more.
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

/// The cases that both have, and those that only one has.
fn shared<'a>(
    baseline: &'a TargetSummary,
    candidate: &'a TargetSummary,
    by: ComparisonMetric,
) -> (Vec<Case<'a>>, UnpairedCases, UnpairedCases) {
    let mut others: HashMap<&str, &CaseCounts> = candidate.cases.counts().collect();
    let (mut cases, mut only_baseline) = (Vec::new(), UnpairedCases::default());
    for (id, counts) in baseline.cases.counts() {
        let other = others.get(id).copied();
        let judged = (value(counts, by), other.and_then(|other| value(other, by)));
        match (judged, other) {
            ((Some(one), Some(two)), Some(other)) => {
                let costs = (counts.cost.as_dollars(), other.cost.as_dollars());
                cases.push(Case { id, values: (one, two), costs });
                others.remove(id);
            }
            ((Some(_), None), _) => name(&mut only_baseline, id),
            _ => {}
        }
    }
    let mut only_candidate = UnpairedCases::default();
    let judged = candidate.cases.counts().filter(|(_, case)| value(case, by).is_some());
    let left = judged.filter(|(id, _)| others.contains_key(id));
    left.for_each(|(id, _)| name(&mut only_candidate, id));
    (cases, only_baseline, only_candidate)
}

fn name(unpaired: &mut UnpairedCases, id: &str) {
    unpaired.count += 1;
    if unpaired.first.len() < SHOWN {
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

/// The cases that differ most, losses first.
fn changes(cases: &[Case<'_>]) -> Vec<CaseChange> {
    let mut changed: Vec<&Case<'_>> =
        cases.iter().filter(|case| case.values.0 != case.values.1).collect();
    changed.sort_by(|one, other| {
        let difference = |case: &Case<'_>| case.values.1 - case.values.0;
        difference(one)
            .abs()
            .total_cmp(&difference(other).abs())
            .reverse()
            .then(difference(one).total_cmp(&difference(other)))
    });
    changed
        .into_iter()
        .take(SHOWN)
        .map(|case| CaseChange {
            case: case.id.into(),
            baseline: case.values.0,
            candidate: case.values.1,
        })
        .collect()
}

/// Which targets of which runs are meant: each run with the name of a target, or the pairs of equal
/// names.
pub fn pairs<'a>(
    summaries: &'a [(Summary, Option<String>)],
) -> Result<(Compared<'a>, Vec<Compared<'a>>), Error> {
    let usage = |message: &str, hint: &str| {
        Err(Error::Usage { code: None, message: message.to_owned(), hint: Some(hint.to_owned()) })
    };
    match summaries {
        [] => usage("nothing to compare", "name two runs, or one with several targets"),
        [(only, _)] => match only.targets.as_slice() {
            [] | [_] => usage(
                "a single target cannot be compared with itself",
                "name another run to compare it with",
            ),
            [baseline, others @ ..] => {
                let compared = |target| Compared { summary: only, target };
                Ok((compared(baseline), others.iter().map(compared).collect()))
            }
        },
        [(first, named), others @ ..] => {
            // A target of the other runs tells which one is meant here, and the other way round.
            let known: Option<&str> = std::iter::once(named)
                .chain(others.iter().map(|(_, named)| named))
                .find_map(|named| named.as_deref());
            let meant = |summary: &'a Summary, named: &'a Option<String>| {
                let has = |name: &&str| {
                    summary.targets.iter().any(|target: &TargetSummary| target.target == *name)
                };
                Compared::find(summary, named.as_deref().or(known.filter(has)))
            };
            let baseline = meant(first, named)?;
            let others = others.iter().map(|(summary, named)| meant(summary, named));
            Ok((baseline, others.collect::<Result<_, Error>>()?))
        }
    }
}
