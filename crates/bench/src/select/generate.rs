//! Matrices whose truth is known because they were made.
//!
//! Each combination has a quality; a datapoint's latent value for it is made of the difficulty that
//! all share, of what the models in its roles make of it, and of noise of its own. Scores of 0 and 1
//! go by rank, so that the row's mean is the quality, to the datapoint.

use super::matrix::Matrix;
use bakeoff_core::NanoDollars;
use bakeoff_select::{Observation, Role, Space, SpaceError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::f64::consts::TAU;

/// What a matrix is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// Roles, and candidates of each.
    pub roles: (usize, usize),
    /// How the qualities come about.
    pub quality: Quality,
    /// Standard deviation of a cell's own noise beside the difficulty's, which is 1.
    pub noise: f64,
    /// Whether scores lie between 0 and 1.
    pub graded: bool,
    /// Whether better models cost more.
    pub priced: bool,
    /// Where the qualities lie: 0 is around one half, 1.3 near the ceiling.
    pub centre: f64,
    /// How much more the first role matters than the others.
    pub first: f64,
    /// Standard deviation of what a model makes of a datapoint, wherever it is used.
    pub habits: f64,
    /// How much combinations differ in how the difficulty tells on them.
    pub loading: f64,
    /// Standard deviation of the logarithm of prices; a hundredth of the cells runs away and costs
    /// thirty times as much when it is above 1.
    pub prices: f64,
    /// Share of cells that errored.
    pub missing: f64,
}

/// How the qualities come about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quality {
    /// Effects of the models in their roles, and of the combination itself, by standard deviation.
    Effects {
        /// Of a model in a role.
        role: f64,
        /// Of the combination itself.
        own: f64,
    },
    /// All the same.
    Tied,
    /// All within two points.
    Near,
    /// One is far better than the others, which are alike.
    Needle,
    /// Effects, but nobody gets past a ceiling under which the best crowd within a point or two.
    Crowded,
}

const BASE: Kind = Kind {
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

/// The kinds that are measured.
pub const KINDS: [Kind; 24] = [
    Kind { name: "additive 9", roles: (2, 3), ..BASE },
    Kind { name: "single role 9", roles: (1, 9), ..BASE },
    BASE,
    Kind { name: "close 81", quality: Quality::Effects { role: 0.3, own: 0.05 }, ..BASE },
    Kind { name: "unrelated costs 81", priced: false, ..BASE },
    Kind { name: "interaction 81", quality: Quality::Effects { role: 0.3, own: 0.4 }, ..BASE },
    Kind { name: "low noise 81", noise: 0.3, ..BASE },
    Kind { name: "high noise 81", noise: 3.0, ..BASE },
    Kind { name: "graded 81", graded: true, ..BASE },
    Kind { name: "needle 81", quality: Quality::Needle, ..BASE },
    Kind { name: "near-tied 81", quality: Quality::Near, ..BASE },
    // So few that hardly anybody errs on more than 5 %: those are judged by their errors as well, which
    // the truth here is not.
    Kind { name: "gaps 81", missing: 0.02, ..BASE },
    Kind { name: "additive 512", roles: (3, 8), ..BASE },
    Kind {
        name: "interaction 512",
        roles: (3, 8),
        quality: Quality::Effects { role: 0.25, own: 0.3 },
        ..BASE
    },
    Kind { name: "all tied 9", roles: (1, 9), quality: Quality::Tied, ..BASE },
    Kind { name: "near-tied 9", roles: (1, 9), quality: Quality::Near, ..BASE },
    Kind { name: "crowded top 81", quality: Quality::Crowded, ..BASE },
    Kind { name: "ceiling 81", centre: 1.3, ..BASE },
    Kind { name: "ceiling 9", roles: (1, 9), centre: 1.3, ..BASE },
    Kind { name: "uneven loading 81", loading: 0.5, ..BASE },
    Kind { name: "shared mistakes 81", habits: 1.5, ..BASE },
    Kind { name: "strong planner 81", first: 4.0, prices: 1.2, ..BASE },
    Kind {
        name: "graded crowded 81",
        quality: Quality::Crowded,
        graded: true,
        prices: 1.2,
        ..BASE
    },
    Kind { name: "dear outliers 16", roles: (2, 4), prices: 1.5, ..BASE },
];

/// Makes a matrix.
///
/// # Errors
///
/// The kind has no roles, no candidates, or no datapoints.
pub fn generate(kind: &Kind, datapoints: usize, seed: u64) -> Result<Matrix, SpaceError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (roles, candidates) = kind.roles;
    let role = |role: usize| Role {
        name: format!("role{role}"),
        candidates: (0..candidates).map(|number| format!("model{number}")).collect(),
    };
    let space = Space::full((0..roles).map(role).collect(), datapoints)?;
    let mut table = |rows: usize, columns: usize| -> Vec<Vec<f64>> {
        (0..rows).map(|_| (0..columns).map(|_| normal(&mut random)).collect()).collect()
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
    let needle = random.random_range(0..space.combos());
    let mut cells = Vec::with_capacity(space.combos());
    for combo in 0..space.combos() {
        let members = || space.members(combo).iter().map(|&member| member as usize).enumerate();
        // The first role counts for more, and the sum for no more than before.
        let weights = |place: usize| if place == 0 { kind.first } else { 1.0 };
        let norm =
            ((0..roles).map(|place| weights(place).powi(2)).sum::<f64>() / roles as f64).sqrt();
        let sum: f64 =
            members().map(|(place, member)| weights(place) * effects[place][member]).sum::<f64>()
                / norm;
        let quality = match kind.quality {
            Quality::Effects { role, own: sd } => {
                cumulative(kind.centre + role * sum + sd * own[combo])
            }
            Quality::Crowded => {
                cumulative(0.6 * sum + 0.1 * own[combo]).min(0.8) + 0.02 * random.random::<f64>()
            }
            Quality::Tied => 0.7,
            Quality::Near => 0.68 + 0.02 * random.random::<f64>(),
            Quality::Needle if combo == needle => 0.75,
            Quality::Needle => 0.58 + 0.02 * own[combo],
        };
        let loading = (kind.loading * normal(&mut random)).exp();
        let latent: Vec<f64> = (0..datapoints)
            .map(|at| {
                let habit: f64 =
                    members().map(|(place, member)| habits[place * candidates + member][at]).sum();
                loading * difficulty[at]
                    + kind.habits * habit / (roles as f64).sqrt()
                    + kind.noise * noise[combo][at]
            })
            .collect();
        let scores = if kind.graded { graded(&latent, quality) } else { ranked(&latent, quality) };
        let price: f64 = members().map(|(place, member)| prices[place][member]).sum();
        let row = scores.into_iter().map(|score| {
            let score = (random.random::<f64>() >= kind.missing).then_some(score);
            let usual = price * (0.5 * normal(&mut random)).exp();
            let is_outlier = kind.prices > 1.0 && random.random::<f64>() < 0.01;
            let cost = if is_outlier { 30.0 * usual } else { usual };
            let cost = NanoDollars::from_dollars(cost).unwrap_or_default();
            Observation { score, cost, paid: cost, latency: price * 1000.0 }
        });
        cells.push(row.collect());
    }
    Ok(Matrix { name: kind.name.to_owned(), space, cells })
}

/// 1 for the highest, as many as the quality says.
fn ranked(latent: &[f64], quality: f64) -> Vec<f64> {
    let right = (quality * latent.len() as f64).round() as usize;
    let mut order: Vec<usize> = (0..latent.len()).collect();
    order.sort_by(|&left, &right| latent[right].total_cmp(&latent[left]));
    let mut scores = vec![0.0; latent.len()];
    order.into_iter().take(right).for_each(|at| scores[at] = 1.0);
    scores
}

fn graded(latent: &[f64], quality: f64) -> Vec<f64> {
    let spread =
        (latent.iter().map(|value| value * value).sum::<f64>() / latent.len() as f64).sqrt();
    latent.iter().map(|value| (quality + 0.25 * value / spread).clamp(0.0, 1.0)).collect()
}

fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

/// The normal distribution's, near enough for making matrices (logistic approximation).
fn cumulative(z: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * z).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_one_matrix_and_the_truth_is_what_was_asked_for() {
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
