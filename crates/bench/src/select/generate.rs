//! Generated matrices with known true qualities.
//!
//! Each combination has a quality. The latent value of a datapoint is the sum of a difficulty shared by all
//! combinations, effects of the models in their roles, and independent noise. Binary scores are assigned by rank,
//! so that the mean of a row equals its quality to within one datapoint.

use super::matrix::Matrix;
use bakeoff_core::NanoDollars;
use bakeoff_select::{Observation, Role, Space, SpaceError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::f64::consts::TAU;

/// Kind of generated matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixKind {
    /// Name.
    pub name: &'static str,
    /// Number of roles and of candidates per role.
    pub roles: (usize, usize),
    /// Distribution of the qualities.
    pub quality: Quality,
    /// Standard deviation of the noise of a cell; that of the difficulty is 1.
    pub noise: f64,
    /// Whether scores are continuous between 0 and 1 instead of binary.
    pub graded: bool,
    /// Whether better models cost more.
    pub priced: bool,
    /// Centre of the qualities: 0 is about one half, 1.3 is near the ceiling.
    pub centre: f64,
    /// Weight of the first role relative to the others.
    pub first: f64,
    /// Standard deviation of the effect of a model on a datapoint, shared by all its combinations.
    pub habits: f64,
    /// Variation between combinations in the effect of the difficulty.
    pub loading: f64,
    /// Standard deviation of the logarithm of prices; above 1, one percent of the cells are outliers that cost thirty
    /// times as much.
    pub prices: f64,
    /// Share of errored cells.
    pub missing: f64,
}

/// Distribution of the qualities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quality {
    /// Sum of effects of the models in their roles and of the combination, with standard deviations.
    Effects {
        /// Standard deviation of the effect of a model in a role.
        role: f64,
        /// Standard deviation of the effect of the combination.
        own: f64,
    },
    /// All equal.
    Tied,
    /// All within two percentage points.
    Near,
    /// One far better than the others, which are similar.
    Needle,
    /// Effects with a ceiling; the best combinations lie within one or two percentage points below it.
    Crowded,
}

const BASE: MatrixKind = MatrixKind {
    name: "additive 81",
    roles: (2, 9),
    quality: Quality::Effects { role: 0.6, own: 0.08 },
    noise: 1.0,
    graded: false,
    priced: true,
    centre: 0.0,
    first: 1.0,
    habits: 0.6,
    loading: 0.0,
    prices: 0.5,
    missing: 0.0,
};

/// Kinds of the benchmark.
pub const KINDS: [MatrixKind; 24] = [
    MatrixKind { name: "additive 9", roles: (2, 3), ..BASE },
    MatrixKind { name: "single role 9", roles: (1, 9), ..BASE },
    BASE,
    MatrixKind { name: "close 81", quality: Quality::Effects { role: 0.3, own: 0.05 }, ..BASE },
    MatrixKind { name: "unrelated costs 81", priced: false, ..BASE },
    MatrixKind {
        name: "interaction 81",
        quality: Quality::Effects { role: 0.3, own: 0.4 },
        ..BASE
    },
    MatrixKind { name: "low noise 81", noise: 0.3, ..BASE },
    MatrixKind { name: "high noise 81", noise: 3.0, ..BASE },
    MatrixKind { name: "graded 81", graded: true, ..BASE },
    MatrixKind { name: "needle 81", quality: Quality::Needle, ..BASE },
    MatrixKind { name: "near-tied 81", quality: Quality::Near, ..BASE },
    // So few that hardly any combination errs on more than 5 %: above that, selectors count errors as well, but the
    // true qualities here do not.
    MatrixKind { name: "gaps 81", missing: 0.02, ..BASE },
    MatrixKind { name: "additive 512", roles: (3, 8), ..BASE },
    MatrixKind {
        name: "interaction 512",
        roles: (3, 8),
        quality: Quality::Effects { role: 0.25, own: 0.3 },
        ..BASE
    },
    MatrixKind { name: "all tied 9", roles: (1, 9), quality: Quality::Tied, ..BASE },
    MatrixKind { name: "near-tied 9", roles: (1, 9), quality: Quality::Near, ..BASE },
    MatrixKind { name: "crowded top 81", quality: Quality::Crowded, ..BASE },
    MatrixKind { name: "ceiling 81", centre: 1.3, ..BASE },
    MatrixKind { name: "ceiling 9", roles: (1, 9), centre: 1.3, ..BASE },
    MatrixKind { name: "uneven loading 81", loading: 0.5, ..BASE },
    MatrixKind { name: "shared mistakes 81", habits: 1.5, ..BASE },
    MatrixKind { name: "strong planner 81", first: 4.0, prices: 1.2, ..BASE },
    MatrixKind {
        name: "graded crowded 81",
        quality: Quality::Crowded,
        graded: true,
        prices: 1.2,
        ..BASE
    },
    MatrixKind { name: "costly outliers 16", roles: (2, 4), prices: 1.5, ..BASE },
];

/// Generates a matrix.
///
/// # Errors
///
/// Fails if the kind has no roles, no candidates or no datapoints.
pub fn generate(kind: &MatrixKind, datapoints: usize, seed: u64) -> Result<Matrix, SpaceError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (roles, candidates) = kind.roles;
    let role = |role: usize| Role {
        name: format!("role{role}"),
        candidates: (0..candidates).map(|number| format!("model{number}")).collect(),
    };
    let space = Space::full((0..roles).map(role).collect(), datapoints)?;
    let mut table = |rows: usize, columns: usize| -> Vec<Vec<f64>> {
        (0..rows).map(|_| (0..columns).map(|_| normal(&mut rng)).collect()).collect()
    };
    let effects = table(roles, candidates);
    let luck = table(roles, candidates);
    let own = table(1, space.combos()).concat();
    let difficulty = table(1, datapoints).concat();
    let habits = table(roles * candidates, datapoints);
    let noise = table(space.combos(), datapoints);
    let prices: Vec<Vec<f64>> = (effects.iter().zip(&luck))
        .map(|(effects, luck)| {
            let logs = effects.iter().zip(luck);
            let log = |(effect, luck): (&f64, &f64)| {
                if kind.priced { effect + kind.prices * luck } else { 1.1 * luck }
            };
            logs.map(|pair| 0.001 * log(pair).exp()).collect()
        })
        .collect();
    let needle = rng.random_range(0..space.combos());
    let mut cells = Vec::with_capacity(space.combos());
    for combo in 0..space.combos() {
        let members = || space.members(combo).iter().map(|&member| member as usize).enumerate();
        // Weighs the first role more, with the variance of the sum unchanged.
        let weights = |role: usize| if role == 0 { kind.first } else { 1.0 };
        let norm =
            ((0..roles).map(|role| weights(role).powi(2)).sum::<f64>() / roles as f64).sqrt();
        let sum: f64 =
            members().map(|(role, member)| weights(role) * effects[role][member]).sum::<f64>()
                / norm;
        let quality = match kind.quality {
            Quality::Effects { role, own: sd } => {
                cumulative(kind.centre + role * sum + sd * own[combo])
            }
            Quality::Crowded => {
                cumulative(0.6 * sum + 0.1 * own[combo]).min(0.8) + 0.02 * rng.random::<f64>()
            }
            Quality::Tied => 0.7,
            Quality::Near => 0.68 + 0.02 * rng.random::<f64>(),
            Quality::Needle if combo == needle => 0.75,
            Quality::Needle => 0.58 + 0.02 * own[combo],
        };
        let loading = (kind.loading * normal(&mut rng)).exp();
        let latent: Vec<f64> = (0..datapoints)
            .map(|at| {
                let habit: f64 =
                    members().map(|(role, member)| habits[role * candidates + member][at]).sum();
                loading * difficulty[at]
                    + kind.habits * habit / (roles as f64).sqrt()
                    + kind.noise * noise[combo][at]
            })
            .collect();
        let scores = if kind.graded { graded(&latent, quality) } else { ranked(&latent, quality) };
        let price: f64 = members().map(|(role, member)| prices[role][member]).sum();
        let row = scores.into_iter().map(|score| {
            let score = (rng.random::<f64>() >= kind.missing).then_some(score);
            let usual = price * (0.5 * normal(&mut rng)).exp();
            let is_outlier = kind.prices > 1.0 && rng.random::<f64>() < 0.01;
            let cost = if is_outlier { 30.0 * usual } else { usual };
            let cost = NanoDollars::from_dollars(cost).unwrap_or_default();
            Observation { score, cost: Some(cost), paid: cost, latency: price * 1000.0 }
        });
        cells.push(row.collect());
    }
    Ok(Matrix { name: kind.name.to_owned(), space, cells })
}

/// Assigns 1 to the highest values, as many as the quality requires.
fn ranked(latent: &[f64], quality: f64) -> Vec<f64> {
    let passed = (quality * latent.len() as f64).round() as usize;
    let mut order: Vec<usize> = (0..latent.len()).collect();
    order.sort_by(|&left, &right| latent[right].total_cmp(&latent[left]));
    let mut scores = vec![0.0; latent.len()];
    order.into_iter().take(passed).for_each(|at| scores[at] = 1.0);
    scores
}

fn graded(latent: &[f64], quality: f64) -> Vec<f64> {
    let spread =
        (latent.iter().map(|value| value * value).sum::<f64>() / latent.len() as f64).sqrt();
    latent.iter().map(|value| (quality + 0.25 * value / spread).clamp(0.0, 1.0)).collect()
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

/// Approximates the cumulative normal distribution by a logistic function.
fn cumulative(z: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * z).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_reproducible_and_match_their_kind() {
        for kind in KINDS.iter().filter(|kind| kind.roles != (3, 8)) {
            let [one, again] = [1, 1].map(|seed| generate(kind, 60, seed).unwrap());
            assert_eq!(one.cells, again.cells, "{}", kind.name);
            let truth = one.truth();
            if kind.quality == Quality::Tied {
                assert!(truth.iter().all(|mean| (mean - 0.7).abs() < 1e-9));
            }
            if kind.quality == Quality::Needle {
                assert!(truth.iter().filter(|mean| **mean > 0.7).count() == 1);
            }
            let gaps = one.cells.iter().flatten().filter(|cell| cell.score.is_none()).count();
            assert_eq!(gaps > 0, kind.missing > 0.0, "{}", kind.name);
        }
    }
}
