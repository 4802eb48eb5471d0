//! Win rate of the better answer with a judge that has a position bias.

use super::{RaceConfig, client, config, run};
use crate::Error;
use bakeoff_pace::Strategy;
use bakeoff_race::{LlmJudgeEvaluation, Orders, VerdictKind};
use bakeoff_sim::SimModel;
use bakeoff_stats::mcnemar;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bias larger than any difference in quality.
const TOTAL_BIAS: f64 = 10.0;

/// Position of the better answer among the configs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BetterAnswerPosition {
    /// First or second at random.
    Random,
    /// Always second.
    Second,
}

/// Results of one judging method.
#[derive(Debug, Clone)]
pub struct BiasRow {
    /// Position of the better answer.
    pub position: BetterAnswerPosition,
    /// Judging method.
    pub method: &'static str,
    /// Number of races.
    pub races: u64,
    /// Races won by the better answer.
    pub better: u64,
    /// Races without a decision of the judge.
    pub ties: u64,
    /// Judge calls.
    pub calls: u64,
    /// p value of the difference from a single call (exact McNemar test).
    pub p_value: f64,
}

/// Results with biased judges.
#[derive(Debug, Clone)]
pub struct BiasReport {
    /// One row per position and method.
    pub rows: Vec<BiasRow>,
    /// Races with a judge that always prefers the first answer.
    pub blind: u64,
    /// Ties among the blind races.
    pub blind_ties: u64,
    /// Blind races won by the answer with fewer tokens, the tie-breaker at equal prices.
    pub blind_cheaper: u64,
}

/// Judging methods: name, orders, rounds.
const METHODS: [(&str, Orders, u32); 4] = [
    ("one call", Orders::AsGiven, 1),
    ("both orders, 1 round", Orders::Both, 1),
    ("both orders, up to 2 rounds", Orders::Both, 2),
    ("both orders, up to 3 rounds", Orders::Both, 3),
];

pub(super) async fn measure(settings: &RaceConfig) -> Result<BiasReport, Error> {
    let mut rows = Vec::new();
    for position in [BetterAnswerPosition::Random, BetterAnswerPosition::Second] {
        let mut single: Vec<bool> = Vec::new();
        for (method, orders, rounds) in METHODS {
            let mut row = BiasRow {
                position,
                method,
                races: settings.races,
                better: 0,
                ties: 0,
                calls: 0,
                p_value: 1.0,
            };
            let mut won = Vec::new();
            for seed in 0..settings.races {
                let trial =
                    judge(seed, position, settings.bias, settings.noise, orders, rounds).await?;
                won.push(trial.better_won);
                row.better += u64::from(trial.better_won);
                row.ties += u64::from(trial.is_tie);
                row.calls += trial.calls;
            }
            if single.is_empty() {
                single = won;
            } else {
                let count = |now: bool, then: bool| {
                    won.iter().zip(&single).filter(|pair| *pair == (&now, &then)).count() as u64
                };
                row.p_value = mcnemar(count(true, false), count(false, true));
            }
            rows.push(row);
        }
    }
    let (mut blind_ties, mut blind_cheaper) = (0, 0);
    for seed in 0..settings.races {
        let trial =
            judge(seed, BetterAnswerPosition::Random, TOTAL_BIAS, 0.0, Orders::Both, 3).await?;
        blind_ties += u64::from(trial.is_tie);
        blind_cheaper += u64::from(trial.cheaper_won);
    }
    Ok(BiasReport { rows, blind: settings.races, blind_ties, blind_cheaper })
}

/// Result of one judged race.
struct BiasTrial {
    better_won: bool,
    cheaper_won: bool,
    is_tie: bool,
    calls: u64,
}

/// Runs one race of two answers with random qualities.
async fn judge(
    seed: u64,
    position: BetterAnswerPosition,
    bias: f64,
    noise: f64,
    orders: Orders,
    rounds: u32,
) -> Result<BiasTrial, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut first, mut second) = (rng.random::<f64>(), rng.random::<f64>());
    if position == BetterAnswerPosition::Second && first > second {
        std::mem::swap(&mut first, &mut second);
    }
    // Rounded as in the answers, so that the order of qualities is the same.
    let hundredths = |quality: f64| (quality * 100.0).round();
    let (first, second) = (hundredths(first), hundredths(second));
    // Equal answers have no better one.
    let second = if first == second { second + 1.0 } else { second };
    let writer = |quality: f64| SimModel { quality: Some(quality / 100.0), ..SimModel::default() };
    let models = BTreeMap::from([
        ("one".to_owned(), writer(first)),
        ("other".to_owned(), writer(second)),
        (
            "judge".to_owned(),
            SimModel { bias: Some(bias), noise: Some(noise), ..SimModel::default() },
        ),
    ]);
    let client = client(seed, models);
    let configs =
        vec![config(&client, "one", Strategy::None)?, config(&client, "other", Strategy::None)?];
    let strategy = LlmJudgeEvaluation::new(config(&client, "judge", Strategy::None)?)
        .orders(orders)
        .rounds(rounds);
    let result = run(configs, Arc::new(strategy)).await?;
    let better = usize::from(second > first);
    let loser_tokens: u64 = result.all_outcomes.iter().map(|other| other.usage.total()).sum();
    Ok(BiasTrial {
        better_won: result.selected_index == better,
        cheaper_won: result.selected.usage.total() <= loser_tokens,
        is_tie: result.verdict.kind == VerdictKind::Tie,
        calls: result.verdict.ballots.len() as u64,
    })
}
