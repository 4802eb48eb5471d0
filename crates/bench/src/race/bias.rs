//! How often the better answer wins although the judge prefers the first one it sees.

use super::{RaceConfig, client, config, run};
use crate::Error;
use bakeoff_pace::Strategy;
use bakeoff_race::{LlmJudgeEvaluation, Orders, VerdictKind};
use bakeoff_sim::Persona;
use bakeoff_stats::mcnemar;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A bias that no difference outweighs.
const TOTAL: f64 = 10.0;

/// Where the better answer stands among the configs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// First or second, by chance.
    Random,
    /// Always second.
    Second,
}

/// How often the better answer wins by one way of asking.
#[derive(Debug, Clone)]
pub struct BiasRow {
    /// Where it stands.
    pub place: Place,
    /// How the judge is asked.
    pub method: &'static str,
    /// Races.
    pub races: u64,
    /// Races that the better answer won.
    pub better: u64,
    /// Races that the judge left undecided.
    pub ties: u64,
    /// Calls of the judge.
    pub calls: u64,
    /// How likely so large a difference from the single call is by chance (McNemar, exact).
    pub p_value: f64,
}

/// What judges with a bias chose.
#[derive(Debug, Clone)]
pub struct BiasReport {
    /// One row per place and way of asking.
    pub rows: Vec<BiasRow>,
    /// Races before a judge who always prefers the first.
    pub blind: u64,
    /// Those of them that were ties.
    pub blind_ties: u64,
    /// Those of them that the answer with fewer tokens won: the tie-breaker where prices are equal.
    pub blind_cheaper: u64,
}

/// Ways of asking: name, orders, rounds.
const METHODS: [(&str, Orders, u32); 4] = [
    ("one call", Orders::AsGiven, 1),
    ("both orders, 1 round", Orders::Both, 1),
    ("both orders, up to 2 rounds", Orders::Both, 2),
    ("both orders, up to 3 rounds", Orders::Both, 3),
];

pub(super) async fn measure(settings: &RaceConfig) -> Result<BiasReport, Error> {
    let mut rows = Vec::new();
    for place in [Place::Random, Place::Second] {
        let mut single: Vec<bool> = Vec::new();
        for (method, orders, rounds) in METHODS {
            let mut row = BiasRow {
                place,
                method,
                races: settings.races,
                better: 0,
                ties: 0,
                calls: 0,
                p_value: 1.0,
            };
            let mut won = Vec::new();
            for seed in 0..settings.races {
                let judged =
                    judge(seed, place, settings.bias, settings.noise, orders, rounds).await?;
                won.push(judged.better_won);
                row.better += u64::from(judged.better_won);
                row.ties += u64::from(judged.is_tie);
                row.calls += judged.calls;
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
        let judged = judge(seed, Place::Random, TOTAL, 0.0, Orders::Both, 3).await?;
        blind_ties += u64::from(judged.is_tie);
        blind_cheaper += u64::from(judged.cheaper_won);
    }
    Ok(BiasReport { rows, blind: settings.races, blind_ties, blind_cheaper })
}

struct Judged {
    better_won: bool,
    cheaper_won: bool,
    is_tie: bool,
    calls: u64,
}

/// One race of two answers of random quality.
async fn judge(
    seed: u64,
    place: Place,
    bias: f64,
    noise: f64,
    orders: Orders,
    rounds: u32,
) -> Result<Judged, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut first, mut second) = (rng.random::<f64>(), rng.random::<f64>());
    if place == Place::Second && first > second {
        std::mem::swap(&mut first, &mut second);
    }
    // As written in the answers, so that what is better here is better there.
    let hundredths = |quality: f64| (quality * 100.0).round();
    let (first, second) = (hundredths(first), hundredths(second));
    // Equals have no better one.
    let second = if first == second { second + 1.0 } else { second };
    let writer = |quality: f64| Persona { quality: Some(quality / 100.0), ..Persona::default() };
    let models = BTreeMap::from([
        ("one".to_owned(), writer(first)),
        ("other".to_owned(), writer(second)),
        (
            "judge".to_owned(),
            Persona { bias: Some(bias), noise: Some(noise), ..Persona::default() },
        ),
    ]);
    let client = client(seed, models);
    let configs =
        vec![config(&client, "one", Strategy::None)?, config(&client, "other", Strategy::None)?];
    let strategy = LlmJudgeEvaluation {
        orders,
        rounds,
        ..LlmJudgeEvaluation::new(config(&client, "judge", Strategy::None)?)
    };
    let result = run(configs, Arc::new(strategy)).await?;
    let better = usize::from(second > first);
    let loser_tokens: u64 = result.all_outcomes.iter().map(|other| other.usage.total()).sum();
    Ok(Judged {
        better_won: result.selected_index == better,
        cheaper_won: result.selected.usage.total() <= loser_tokens,
        is_tie: result.verdict.kind == VerdictKind::Tie,
        calls: result.verdict.ballots.len() as u64,
    })
}
