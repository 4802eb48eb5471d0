//! Generated matrices with known true qualities.
//!
//! Each combination has a quality. The latent value of a datapoint is the sum of a difficulty shared by all
//! combinations, effects of the models in their roles, and independent noise. Binary scores are assigned by rank,
//! so that the mean of a row equals its quality to within one datapoint.

use super::chain::generate_chain;
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
    /// Change of the logarithm of the noise of a combination when the logarithm of its price grows by one standard
    /// deviation. The effect of the difficulty changes the other way, so that cheap and expensive combinations differ in
    /// their correlation with others.
    pub price_noise: f64,
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
    /// A chain in which each step must succeed.
    Chain,
    /// The most expensive combination is best by 0.02; below it, quality rises slowly with the price.
    ExpensiveBest,
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
    price_noise: 0.0,
};

const CHAIN: MatrixKind = MatrixKind { quality: Quality::Chain, noise: 0.6, centre: 1.5, ..BASE };

/// Kinds of the benchmark.
pub const KINDS: [MatrixKind; 33] = [
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
    MatrixKind { name: "chain 64", roles: (3, 4), ..CHAIN },
    MatrixKind { name: "chain 343", roles: (3, 7), ..CHAIN },
    MatrixKind { name: "chain of four 81", roles: (4, 3), ..CHAIN },
    MatrixKind { name: "chain of four 256", roles: (4, 4), prices: 1.0, ..CHAIN },
    MatrixKind { name: "noisy when cheap 12", roles: (1, 12), price_noise: -0.6, ..BASE },
    MatrixKind { name: "noisy when expensive 12", roles: (1, 12), price_noise: 0.6, ..BASE },
    MatrixKind { name: "noisy when cheap 81", price_noise: -0.6, ..BASE },
    MatrixKind { name: "expensive best 9", roles: (1, 9), quality: Quality::ExpensiveBest, ..BASE },
    MatrixKind {
        name: "expensive best 64",
        roles: (2, 8),
        quality: Quality::ExpensiveBest,
        habits: 1.0,
        ..BASE
    },
];

/// Generates a matrix.
///
/// # Errors
///
/// Fails if the kind has no roles, no candidates or no datapoints.
pub fn generate(kind: &MatrixKind, datapoints: usize, seed: u64) -> Result<Matrix, SpaceError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    if kind.quality == Quality::Chain {
        return generate_chain(kind, datapoints, &mut rng);
    }
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
    let price = |combo: usize| -> f64 {
        let members = space.members(combo).iter().zip(&prices);
        members.map(|(&member, prices)| prices[member as usize]).sum()
    };
    let log_prices: Vec<f64> = (0..space.combos()).map(|combo| price(combo).ln()).collect();
    let (mean_log_price, log_price_deviation) = mean_and_deviation(&log_prices);
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
            Quality::Needle | Quality::Chain => 0.58 + 0.02 * own[combo],
            Quality::ExpensiveBest => {
                let dearer = log_prices.iter().filter(|price| **price > log_prices[combo]).count();
                match dearer {
                    0 => 0.8,
                    rank => 0.78 - 0.1 * (rank - 1) as f64 / space.combos() as f64,
                }
            }
        };
        let price = price(combo);
        let log_price = (log_prices[combo] - mean_log_price) / log_price_deviation;
        let loading = (kind.loading * normal(&mut rng) - kind.price_noise * log_price).exp();
        let noise_level = kind.noise * (kind.price_noise * log_price).exp();
        let latent: Vec<f64> = (0..datapoints)
            .map(|at| {
                let habit: f64 =
                    members().map(|(role, member)| habits[role * candidates + member][at]).sum();
                loading * difficulty[at]
                    + kind.habits * habit / (roles as f64).sqrt()
                    + noise_level * noise[combo][at]
            })
            .collect();
        let scores = if kind.graded { graded(&latent, quality) } else { ranked(&latent, quality) };
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

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / values.len() as f64).sqrt().max(1e-9))
}

pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
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
        for kind in KINDS.iter().filter(|kind| kind.roles.0 < 3 || kind.roles.1 < 5) {
            let [one, again] = [1, 1].map(|seed| generate(kind, 60, seed).unwrap());
            assert_eq!(one.cells, again.cells, "{}", kind.name);
            let truth = one.truth();
            if kind.quality == Quality::Tied {
                assert!(truth.iter().all(|mean| (mean - 0.7).abs() < 1e-9));
            }
            if kind.quality == Quality::Needle {
                assert!(truth.iter().filter(|mean| **mean > 0.7).count() == 1);
            }
            if kind.quality == Quality::ExpensiveBest {
                let best = |values: &[f64]| {
                    (0..values.len()).max_by(|&one, &other| values[one].total_cmp(&values[other]))
                };
                let sum = |row: &Vec<Observation>| row.iter().map(|cell| cell.latency).sum();
                let prices: Vec<f64> = one.cells.iter().map(sum).collect();
                assert_eq!(best(&truth), best(&prices), "{}", kind.name);
            }
            let gaps = one.cells.iter().flatten().filter(|cell| cell.score.is_none()).count();
            assert_eq!(gaps > 0, kind.missing > 0.0, "{}", kind.name);
        }
    }

    /// Correlations of the cheapest and of the most expensive combination with the mean of all.
    fn correlations(price_noise: f64) -> [f64; 2] {
        let kind = MatrixKind { roles: (1, 30), graded: true, price_noise, ..BASE };
        let matrix = generate(&kind, 400, 5).unwrap();
        let scores = |row: &Vec<Observation>| -> Vec<f64> {
            row.iter().map(|cell| cell.score.unwrap()).collect()
        };
        let rows: Vec<Vec<f64>> = matrix.cells.iter().map(scores).collect();
        let mean = |at: usize| rows.iter().map(|row| row[at]).sum::<f64>() / rows.len() as f64;
        let means: Vec<f64> = (0..400).map(mean).collect();
        let mut by_price: Vec<usize> = (0..rows.len()).collect();
        let price = |row: usize| matrix.cells[row][0].latency;
        by_price.sort_by(|&one, &other| price(one).total_cmp(&price(other)));
        [by_price[0], by_price[29]].map(|row| {
            let [own, all] = [mean_and_deviation(&rows[row]), mean_and_deviation(&means)];
            let pairs = rows[row].iter().zip(&means);
            pairs.map(|(one, other)| (one - own.0) * (other - all.0)).sum::<f64>()
                / (400.0 * own.1 * all.1)
        })
    }

    #[test]
    fn noise_tied_to_the_price_changes_the_correlation_with_others() {
        let [cheap, expensive] = correlations(0.6);
        assert!(cheap > expensive + 0.3, "{cheap} {expensive}");
        let [cheap, expensive] = correlations(-0.6);
        assert!(expensive > cheap + 0.3, "{cheap} {expensive}");
    }
}
