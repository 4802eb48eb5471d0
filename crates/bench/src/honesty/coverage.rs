//! Coverage of the intervals of a target, by the functions that a summary uses.

use bakeoff_stats::{CaseRate, mean_pass_rate, mean_score};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Numbers of cases.
const CASES: [usize; 5] = [2, 3, 5, 10, 50];

/// Numbers of trials per case.
const TRIALS: [u64; 4] = [1, 3, 5, 20];

/// What the trials of a case have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Trials pass or fail; the interval is that of the pass rate.
    PassOrFail,
    /// Trials have scores between 0 and 1; the interval is that of the score.
    Score,
}

/// Coverage for one number of cases and trials and one distribution of cases.
#[derive(Debug, Clone)]
pub struct CoverageRow {
    /// What the trials of a case have.
    pub outcome: Outcome,
    /// Distribution of the rates or mean scores of cases.
    pub distribution: &'static str,
    /// Number of cases.
    pub cases: usize,
    /// Trials per case.
    pub trials: u64,
    /// Share of samples whose interval contains the true mean.
    pub coverage: f64,
    /// Mean width of the intervals.
    pub width: f64,
}

/// A distribution of the rates or mean scores of cases.
struct CaseDistribution {
    name: &'static str,
    mean: f64,
    draw: fn(&mut ChaCha8Rng) -> f64,
}

const RATES: [CaseDistribution; 8] = [
    CaseDistribution { name: "all 0.5", mean: 0.5, draw: |_| 0.5 },
    CaseDistribution { name: "all 0.9", mean: 0.9, draw: |_| 0.9 },
    CaseDistribution { name: "all 0.98", mean: 0.98, draw: |_| 0.98 },
    CaseDistribution { name: "Beta(4, 1)", mean: 0.8, draw: |rng| power(rng, 4.0) },
    CaseDistribution { name: "Beta(19, 1)", mean: 0.95, draw: |rng| power(rng, 19.0) },
    CaseDistribution { name: "Beta(0.5, 0.5)", mean: 0.5, draw: arcsine },
    CaseDistribution { name: "0 or 1, mean 0.95", mean: 0.95, draw: |rng| two_points(rng, 0.95) },
    CaseDistribution { name: "85 % 1, others uniform", mean: 0.925, draw: mostly_one },
];

const SCORES: [CaseDistribution; 7] = [
    CaseDistribution { name: "all 0.7", mean: 0.7, draw: |_| 0.7 },
    CaseDistribution { name: "uniform", mean: 0.5, draw: |rng| rng.random() },
    CaseDistribution { name: "Beta(4, 1)", mean: 0.8, draw: |rng| power(rng, 4.0) },
    CaseDistribution { name: "Beta(19, 1)", mean: 0.95, draw: |rng| power(rng, 19.0) },
    CaseDistribution { name: "0 or 1, mean 0.95", mean: 0.95, draw: |rng| two_points(rng, 0.95) },
    CaseDistribution { name: "steps 0, 0.5, 1", mean: 0.8, draw: steps },
    CaseDistribution { name: "85 % 1, others uniform", mean: 0.925, draw: mostly_one },
];

/// Beta(`shape`, 1) by its inverse.
fn power(rng: &mut ChaCha8Rng, shape: f64) -> f64 {
    rng.random::<f64>().powf(1.0 / shape)
}

/// Beta(1/2, 1/2) by its inverse.
fn arcsine(rng: &mut ChaCha8Rng) -> f64 {
    (0.5 * std::f64::consts::PI * rng.random::<f64>()).sin().powi(2)
}

fn two_points(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    if rng.random::<f64>() < mean { 1.0 } else { 0.0 }
}

fn mostly_one(rng: &mut ChaCha8Rng) -> f64 {
    if rng.random::<f64>() < 0.85 { 1.0 } else { rng.random() }
}

/// Like a rubric with three grades: 10 % 0, 20 % 0.5 and 70 % 1.
fn steps(rng: &mut ChaCha8Rng) -> f64 {
    match rng.random::<f64>() {
        ..0.1 => 0.0,
        0.1..0.3 => 0.5,
        _ => 1.0,
    }
}

/// Draws `samples` targets for each number of cases and trials and each distribution, and calls `on_row` for
/// each of them.
pub fn coverage(samples: u32, on_row: &mut dyn FnMut(&CoverageRow)) -> Vec<CoverageRow> {
    let mut rows = Vec::new();
    for (outcome, distributions) in
        [(Outcome::PassOrFail, RATES.as_slice()), (Outcome::Score, SCORES.as_slice())]
    {
        for cases in CASES {
            for trials in TRIALS {
                for distribution in distributions {
                    let row = measure(outcome, distribution, cases, trials, samples);
                    on_row(&row);
                    rows.push(row);
                }
            }
        }
    }
    rows
}

fn measure(
    outcome: Outcome,
    distribution: &CaseDistribution,
    cases: usize,
    trials: u64,
    samples: u32,
) -> CoverageRow {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut covered, mut width) = (0_u32, 0.0);
    for _ in 0..samples {
        let means = (0..cases).map(|_| (distribution.draw)(&mut rng)).collect::<Vec<f64>>();
        let estimate = match outcome {
            Outcome::PassOrFail => {
                let rates: Vec<CaseRate> =
                    means.iter().map(|rate| passed_trials(&mut rng, *rate, trials)).collect();
                mean_pass_rate(rates.into_iter())
            }
            Outcome::Score => {
                let scores: Vec<f64> =
                    means.iter().map(|mean| mean_of_trials(&mut rng, *mean, trials)).collect();
                mean_score(&scores)
            }
        };
        let Some(interval) = estimate.map(|estimate| estimate.interval) else { continue };
        covered += u32::from(interval.contains(distribution.mean));
        width += interval.high - interval.low;
    }
    CoverageRow {
        outcome,
        distribution: distribution.name,
        cases,
        trials,
        coverage: f64::from(covered) / f64::from(samples),
        width: width / f64::from(samples),
    }
}

fn passed_trials(rng: &mut ChaCha8Rng, rate: f64, trials: u64) -> CaseRate {
    let passed = (0..trials).filter(|_| rng.random::<f64>() < rate).count() as u64;
    CaseRate { passed, counted: trials }
}

/// Returns the mean of scores that are uniform around `mean`, as far as 0 and 1 permit.
fn mean_of_trials(rng: &mut ChaCha8Rng, mean: f64, trials: u64) -> f64 {
    let reach = 0.5 * mean.min(1.0 - mean);
    let sum: f64 = (0..trials).map(|_| mean + reach * (2.0 * rng.random::<f64>() - 1.0)).sum();
    sum / trials as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fewer samples and sizes than a measurement; a point allows for random variation.
    #[test]
    fn intervals_of_ten_cases_cover_the_mean() {
        for (outcome, distributions) in
            [(Outcome::PassOrFail, RATES.as_slice()), (Outcome::Score, SCORES.as_slice())]
        {
            for (distribution, trials) in distributions.iter().flat_map(|one| [(one, 1), (one, 5)])
            {
                let row = measure(outcome, distribution, 10, trials, 300);
                assert!(row.coverage >= 0.92, "{row:?}");
            }
        }
    }

    #[test]
    fn distributions_have_their_means() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for distribution in RATES.iter().chain(&SCORES) {
            let sum: f64 = (0..20_000).map(|_| (distribution.draw)(&mut rng)).sum();
            let mean = sum / 20_000.0;
            assert!((mean - distribution.mean).abs() < 0.01, "{}: {mean}", distribution.name);
        }
    }
}
