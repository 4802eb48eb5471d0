//! Comparisons of random pairs of targets: whether interval and test agree, and how often equal targets
//! differ.

use crate::Error;
use bakeoff_core::{Comparison, Finding, SCHEMA_VERSION, Summary};
use bakeoff_history::{CompareConfig, TargetPair, compare, pair_targets};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

/// Smallest and largest number of cases.
const CASES: std::ops::RangeInclusive<usize> = 10..=200;

/// Numbers of trials per case.
const TRIALS: [u32; 5] = [1, 1, 2, 3, 5];

/// Pairs that are compared together, so that they are adjusted.
const PAIRS_TOGETHER: usize = 4;

/// Level of significance.
const ALPHA: f64 = 0.05;

/// Counts over random pairs of targets.
#[derive(Debug, Clone, Copy, Default)]
pub struct PairCounts {
    /// Compared pairs with different true rates, each alone.
    pub pairs: u64,
    /// Those with a finding.
    pub differences: u64,
    /// Pairs whose interval excludes 0 although p exceeds the level, or the other way round.
    pub disagreements: u64,
    /// Pairs among several compared together whose interval disagrees with the adjusted p.
    pub adjusted_disagreements: u64,
    /// Pairs of equal targets, each alone.
    pub equal_pairs: u64,
    /// Those with a finding.
    pub false_differences: u64,
}

/// Compares `pairs` random pairs of targets with different true rates, and as many equal ones.
pub fn random_pairs(pairs: u64) -> Result<PairCounts, Error> {
    let mut counts = PairCounts { pairs, equal_pairs: pairs, ..PairCounts::default() };
    let mut together = Vec::new();
    for seed in 0..pairs {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let shift = rng.random_range(-0.3..0.3);
        let pair = PairOfRuns::draw(&mut rng, shift)?;
        let alone = pair.compare(seed)?;
        counts.differences += u64::from(alone.finding != Finding::NoDifference);
        counts.disagreements += u64::from(!agrees(&alone));
        together.push(pair);
        if together.len() == PAIRS_TOGETHER {
            let adjusted = compare_together(&std::mem::take(&mut together), seed)?;
            let disagreeing = adjusted.iter().filter(|comparison| !agrees(comparison)).count();
            counts.adjusted_disagreements += disagreeing as u64;
        }
        let equal = PairOfRuns::draw(&mut rng, 0.0)?.compare(seed)?;
        counts.false_differences += u64::from(equal.finding != Finding::NoDifference);
        counts.disagreements += u64::from(!agrees(&equal));
    }
    Ok(counts)
}

/// Whether interval, p and finding say the same.
fn agrees(comparison: &Comparison) -> bool {
    let is_significant = comparison.adjusted_p_value <= ALPHA;
    let excludes_zero = comparison.interval.low > 0.0 || comparison.interval.high < 0.0;
    let has_finding = comparison.finding != Finding::NoDifference;
    is_significant == excludes_zero && is_significant == has_finding
}

/// Two runs of one target each.
struct PairOfRuns([(Summary, Option<String>); 2]);

impl PairOfRuns {
    /// Draws both runs. The rates of the cases differ by `shift` between them, as far as 0 and 1 permit.
    fn draw(rng: &mut ChaCha8Rng, shift: f64) -> Result<PairOfRuns, Error> {
        let cases = rng.random_range(CASES);
        let trials = TRIALS[rng.random_range(0..TRIALS.len())];
        let shape = rng.random_range(0.3..6.0_f64);
        let rates: Vec<f64> = (0..cases).map(|_| rng.random::<f64>().powf(1.0 / shape)).collect();
        let shifted: Vec<f64> = rates.iter().map(|rate| (rate + shift).clamp(0.0, 1.0)).collect();
        let [one, two] = [rates, shifted].map(|rates| summary(rng, &rates, trials));
        Ok(PairOfRuns([(one?, None), (two?, None)]))
    }

    fn pair(&self) -> Result<TargetPair<'_>, Error> {
        let found = pair_targets(&self.0).map_err(failed)?;
        found.pairs.first().copied().ok_or_else(|| Error::Eval("no pair of targets".to_owned()))
    }

    fn compare(&self, seed: u64) -> Result<Comparison, Error> {
        let mut found = compare_pairs(&[self.pair()?], seed)?;
        found.pop().ok_or_else(|| Error::Eval("no comparison".to_owned()))
    }
}

fn compare_together(pairs: &[PairOfRuns], seed: u64) -> Result<Vec<Comparison>, Error> {
    let pairs: Vec<TargetPair<'_>> =
        pairs.iter().map(PairOfRuns::pair).collect::<Result<_, Error>>()?;
    compare_pairs(&pairs, seed)
}

fn compare_pairs(pairs: &[TargetPair<'_>], seed: u64) -> Result<Vec<Comparison>, Error> {
    let mut config = CompareConfig::default();
    (config.alpha, config.seed) = (ALPHA, seed);
    compare(pairs, config).map_err(failed)
}

fn failed(error: bakeoff_history::Error) -> Error {
    Error::Eval(error.to_string())
}

/// Returns a stored summary with random trials of a target that has these true rates of its cases.
fn summary(rng: &mut ChaCha8Rng, rates: &[f64], trials: u32) -> Result<Summary, Error> {
    let mut total_passed = 0;
    let cases: Vec<Value> = (0..)
        .zip(rates)
        .map(|(number, rate): (u32, _)| {
            let passed = (0..trials).filter(|_| rng.random::<f64>() < *rate).count();
            total_passed += passed;
            json!({
                "id": format!("c{number}"),
                "status": "passed",
                "pass_count": passed,
                "total_trials": trials,
                "pass_rate": passed as f64 / f64::from(trials),
                "counted": trials,
                "errors": 0,
            })
        })
        .collect();
    let total_trials = rates.len() as u64 * u64::from(trials);
    let summary = json!({
        "schema_version": SCHEMA_VERSION,
        "run_id": "run",
        "suite": "honesty",
        "verdict": "passed",
        "targets": [{
            "target": "target",
            "gate": true,
            "verdict": "passed",
            "suite_pass": true,
            "suite_pass_rate": 1.0,
            "total_cases": rates.len(),
            "passed": rates.len(),
            "failed": 0,
            "inconclusive": 0,
            "trials_per_case": trials,
            "pass_threshold": 0.0,
            "total_trials": total_trials,
            "pass_count": total_passed,
            "counted": total_trials,
            "errors": 0,
            "skipped": 0,
            "usage": {"input": 0, "output": 0},
            "cost_nanodollars": 0,
            "unpriced": 0,
            "cases": cases,
        }],
        "stats": {"started_at": "", "elapsed_ms": 0, "retries": 0, "cached": 0},
    });
    serde_json::from_value(summary).map_err(|error| Error::Summary(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fewer pairs than a measurement; 6 of 24 equal pairs are beyond the 99.9 % point of 5 %.
    #[test]
    fn intervals_agree_with_tests_and_equal_targets_rarely_differ() {
        let counts = random_pairs(24).unwrap();
        assert_eq!((counts.disagreements, counts.adjusted_disagreements), (0, 0), "{counts:?}");
        assert!(counts.differences > 6, "{counts:?}");
        assert!(counts.false_differences < 6, "{counts:?}");
    }
}
