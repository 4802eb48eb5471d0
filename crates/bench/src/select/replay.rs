//! Replay of selectors on a matrix with different orders of the datapoints.

use super::matrix::Matrix;
use bakeoff_select::{
    self as select, Cell, Objective, OptionsError, SearchBudget, Selector, Space,
};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Maximum distance from the best score of a winner that counts as found.
pub const EPSILON: f64 = 0.01;

/// Builds a selector for a space and a seed.
pub type BuildSelector<'a> =
    dyn Fn(&Space, u64) -> Result<Box<dyn Selector>, OptionsError> + Sync + 'a;

/// Results of a selector on a matrix, averaged over seeds.
#[derive(Debug, Clone, Default)]
pub struct ReplayFigures {
    /// Share of searches whose winner is within ε of the best.
    pub find_rate: f64,
    /// Difference between the best score and that of the winner.
    pub regret: f64,
    /// Evaluated cells.
    pub cells: f64,
    /// Evaluated cells as a share of all cells.
    pub cells_share: f64,
    /// Cost as a share of the cost of all cells.
    pub cost_share: f64,
    /// Claimed confidence; 0 without a claim.
    pub claimed: f64,
    /// Number of searches.
    pub seeds: u64,
}

impl ReplayFigures {
    /// Returns the mean of parts, weighted by their seeds.
    pub(super) fn mean(parts: &[ReplayFigures]) -> ReplayFigures {
        let seeds: u64 = parts.iter().map(|part| part.seeds).sum();
        let mean = |of: fn(&ReplayFigures) -> f64| {
            let sum: f64 = parts.iter().map(|part| of(part) * part.seeds as f64).sum();
            sum / seeds.max(1) as f64
        };
        ReplayFigures {
            find_rate: mean(|part| part.find_rate),
            regret: mean(|part| part.regret),
            cells: mean(|part| part.cells),
            cells_share: mean(|part| part.cells_share),
            cost_share: mean(|part| part.cost_share),
            claimed: mean(|part| part.claimed),
            seeds,
        }
    }
}

/// Returns the order of the datapoints for a seed.
pub fn order(datapoints: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..datapoints).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    order
}

/// Replays a matrix over seeds.
///
/// # Errors
///
/// Fails if the selector cannot be built.
pub fn replay(
    matrix: &Matrix,
    build: &BuildSelector<'_>,
    seeds: std::ops::Range<u64>,
) -> Result<ReplayFigures, OptionsError> {
    let truth = matrix.truth();
    let best = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total_cost: f64 = matrix.costs().iter().sum();
    let mut sums = ReplayFigures { seeds: seeds.end - seeds.start, ..ReplayFigures::default() };
    for seed in seeds {
        let order = order(matrix.space.datapoints(), seed);
        let mut selector = build(&matrix.space, seed)?;
        let observe = |cell: Cell| matrix.cells[cell.combo][order[cell.datapoint]].clone();
        let (objective, budget) = (Objective::default(), SearchBudget::default());
        let found = select::replay(&matrix.space, selector.as_mut(), observe, objective, budget);
        let Ok(found) = found else {
            // A search without a winner counts as not found.
            sums.regret += best;
            continue;
        };
        let regret = best - truth[found.winner];
        sums.find_rate += f64::from(u8::from(regret <= EPSILON + 1e-9));
        sums.regret += regret;
        sums.cells += found.cells as f64;
        sums.cost_share += if total_cost > 0.0 {
            found.spent.unwrap_or_default().as_dollars() / total_cost
        } else {
            0.0
        };
        sums.claimed += found.confidence.unwrap_or(0.0);
    }
    let count = sums.seeds.max(1) as f64;
    Ok(ReplayFigures {
        find_rate: sums.find_rate / count,
        regret: sums.regret / count,
        cells: sums.cells / count,
        cells_share: sums.cells / count / matrix.space.cells() as f64,
        cost_share: sums.cost_share / count,
        claimed: sums.claimed / count,
        seeds: sums.seeds,
    })
}
