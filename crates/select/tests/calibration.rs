//! Calibration of `auto`: on average, its confidence is at most 0.03 above the share of correct searches.
//!
//! The matrices are of the kind that is hardest for it: the best combination is the most expensive one and only a
//! little better than the others, so a few unlucky cells suffice to make the model give it up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_core::NanoDollars;
use bakeoff_select::{
    Auto, AutoOptions, Cell, Objective, Observation, Role, SearchBudget, Space, replay,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const ARMS: usize = 9;
const DATAPOINTS: usize = 150;
const EPSILON: f64 = 0.01;
const MAX_OVERCLAIM: f64 = 0.03;

fn space() -> Space {
    let candidates = (0..ARMS).map(|arm| format!("m{arm}")).collect();
    Space::full(vec![Role { name: "solver".to_owned(), candidates }], DATAPOINTS).unwrap()
}

/// Cost of a cell, from 1 to 30 dollars.
fn cost(arm: usize) -> NanoDollars {
    NanoDollars::from_dollars(1.53_f64.powi(arm as i32)).unwrap()
}

/// Passes of each combination, as many as its quality requires: 0.6 for the last, and at most 0.578 for the others.
fn random_matrix(seed: u64) -> Vec<Vec<f64>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let difficulty: Vec<f64> = (0..DATAPOINTS).map(|_| random.random()).collect();
    let mut row = |arm: usize| {
        let quality = if arm == ARMS - 1 { 0.60 } else { 0.55 + 0.004 * arm as f64 };
        let passed = (quality * DATAPOINTS as f64) as usize;
        let latent: Vec<f64> =
            difficulty.iter().map(|difficulty| difficulty + random.random::<f64>()).collect();
        let mut order: Vec<usize> = (0..DATAPOINTS).collect();
        order.sort_by(|&one, &other| latent[other].total_cmp(&latent[one]));
        let mut scores = vec![0.0; DATAPOINTS];
        order.into_iter().take(passed).for_each(|at| scores[at] = 1.0);
        scores
    };
    (0..ARMS).map(&mut row).collect()
}

/// Returns the mean confidence and the share of correct searches, with a budget as a share of the cost of all cells.
fn claimed_and_found(budget: Option<f64>) -> (f64, f64) {
    const SEARCHES: u64 = 40;
    let space = space();
    let all = (0..ARMS).map(|arm| cost(arm).as_dollars()).sum::<f64>() * DATAPOINTS as f64;
    let max_cost = budget.map(|share| NanoDollars::from_dollars(share * all).unwrap());
    let (mut claimed, mut found) = (0.0, 0.0);
    for seed in 0..SEARCHES {
        let scores = random_matrix(seed);
        let mut options = AutoOptions::default();
        (options.seed, options.epsilon) = (seed, EPSILON);
        let observe = |cell: Cell| {
            let (score, cost) = (Some(scores[cell.combo][cell.datapoint]), cost(cell.combo));
            Observation { score, cost: Some(cost), paid: cost, latency: 1.0 }
        };
        let budget = SearchBudget { cost: max_cost, ..SearchBudget::default() };
        let mut selector = Auto::new(&space, options);
        let outcome = replay(&space, &mut selector, observe, Objective::default(), budget).unwrap();
        claimed += outcome.confidence.unwrap();
        let quality = |arm: usize| scores[arm].iter().sum::<f64>() / DATAPOINTS as f64;
        found += f64::from(quality(outcome.winner) >= quality(ARMS - 1) - EPSILON - 1e-9);
    }
    (claimed / SEARCHES as f64, found / SEARCHES as f64)
}

#[test]
fn confidence_of_a_finished_search_is_calibrated() {
    let (claimed, found) = claimed_and_found(None);
    assert!(found >= claimed - MAX_OVERCLAIM, "claimed {claimed}, found {found}");
    assert!(claimed > 0.94, "{claimed}");
}

#[test]
fn confidence_of_a_search_that_its_budget_ended_is_calibrated() {
    let (claimed, found) = claimed_and_found(Some(0.5));
    assert!(found >= claimed - MAX_OVERCLAIM, "claimed {claimed}, found {found}");
}
