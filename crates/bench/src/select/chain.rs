//! Generated matrices of chains: a wrong result of one step spoils the result of the chain.
//!
//! The result of a step depends on its model and the datapoint only, so combinations with the same model in a role share its
//! mistakes entirely. A small share of the scores differs at random, because the steps interact.

use super::generate::{MatrixKind, normal};
use super::matrix::Matrix;
use bakeoff_core::NanoDollars;
use bakeoff_select::{Observation, Role, Space, SpaceError};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Share of the scores that differ from the result of the steps.
const INTERACTION: f64 = 0.03;

/// Abilities of the models of one role.
struct Step {
    /// For each model, whether its result for each datapoint is right.
    is_right: Vec<Vec<bool>>,
    prices: Vec<f64>,
}

impl Step {
    fn random(
        candidates: usize,
        datapoints: usize,
        kind: &MatrixKind,
        rng: &mut ChaCha8Rng,
    ) -> Step {
        // Steps differ in how much the model matters.
        let spread = rng.random_range(0.2..1.2);
        let difficulty: Vec<f64> = (0..datapoints).map(|_| normal(rng)).collect();
        let (mut is_right, mut prices) = (Vec::new(), Vec::new());
        for _ in 0..candidates {
            let ability = normal(rng);
            let price = if kind.priced { ability } else { 0.0 } + kind.prices * normal(rng);
            prices.push(0.001 * price.exp());
            let row = difficulty.iter().map(|difficulty| {
                kind.centre + spread * ability + 0.8 * difficulty + kind.noise * normal(rng) > 0.0
            });
            is_right.push(row.collect());
        }
        Step { is_right, prices }
    }
}

/// Generates the matrix of a chain with a step for each role.
pub(super) fn generate_chain(
    kind: &MatrixKind,
    datapoints: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Matrix, SpaceError> {
    let (roles, candidates) = kind.roles;
    let role = |number: usize| Role {
        name: format!("step{number}"),
        candidates: (0..candidates).map(|number| format!("model{number}")).collect(),
    };
    let space = Space::full((0..roles).map(role).collect(), datapoints)?;
    let steps: Vec<Step> =
        (0..roles).map(|_| Step::random(candidates, datapoints, kind, rng)).collect();
    let mut cells = Vec::with_capacity(space.combos());
    for combo in 0..space.combos() {
        let models = || steps.iter().zip(space.members(combo).iter().map(|&model| model as usize));
        let price: f64 = models().map(|(step, model)| step.prices[model]).sum();
        let row = (0..datapoints).map(|at| {
            let is_right = models().all(|(step, model)| step.is_right[model][at]);
            let is_right = is_right != (rng.random::<f64>() < INTERACTION);
            let cost = NanoDollars::from_dollars(price * (0.5 * normal(rng)).exp());
            let cost = cost.unwrap_or_default();
            let score = Some(f64::from(u8::from(is_right)));
            Observation { score, cost: Some(cost), paid: cost, latency: price * 1000.0 }
        });
        cells.push(row.collect());
    }
    Ok(Matrix { name: kind.name.to_owned(), space, cells })
}

#[cfg(test)]
mod tests {
    use super::super::generate::{KINDS, Quality};
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn wrong_step_spoils_the_result() {
        let kind = KINDS.iter().find(|kind| kind.quality == Quality::Chain).unwrap();
        // One model in the first step, which then is right for a part of the datapoints only.
        let kind = MatrixKind { roles: (3, 1), ..*kind };
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let matrix = generate_chain(&kind, 4000, &mut rng).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let steps: Vec<Step> = (0..3).map(|_| Step::random(1, 4000, &kind, &mut rng)).collect();
        let right = |at: usize| steps.iter().all(|step| step.is_right[0][at]);
        let differs =
            |at: &usize| matrix.cells[0][*at].score != Some(f64::from(u8::from(right(*at))));
        let share = (0..4000).filter(differs).count() as f64 / 4000.0;
        assert!((share - INTERACTION).abs() < 0.01, "{share}");
        let wrong = (0..4000).filter(|&at| !right(at)).count();
        assert!((400..3600).contains(&wrong), "{wrong}");
    }
}
