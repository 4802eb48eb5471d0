//! Selectors on matrices, over and over in other orders.

use super::matrix::Matrix;
use bakeoff_select::{
    self as select, Cell, Objective, OptionsError, SearchBudget, Selector, Space,
};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// How far from the best a winner may be.
pub const EPSILON: f64 = 0.01;

/// Makes a selector for a space, by seed.
pub type Make<'a> = dyn Fn(&Space, u64) -> Result<Box<dyn Selector>, OptionsError> + Sync + 'a;

/// What a selector did with a matrix, on average over the seeds.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Share of searches whose winner is within ε of the best.
    pub find_rate: f64,
    /// How much worse the winner is than the best.
    pub regret: f64,
    /// Cells that were paid for.
    pub cells: f64,
    /// The same as a share of all.
    pub cells_share: f64,
    /// Money as a share of all of it.
    pub cost_share: f64,
    /// What was claimed; 0 when nothing was.
    pub claimed: f64,
    /// Searches.
    pub seeds: u64,
}

impl Figures {
    /// Of all seeds, where each part has some of them.
    pub(super) fn mean(parts: &[Figures]) -> Figures {
        let seeds: u64 = parts.iter().map(|part| part.seeds).sum();
        let mean = |of: fn(&Figures) -> f64| {
            let sum: f64 = parts.iter().map(|part| of(part) * part.seeds as f64).sum();
            sum / seeds.max(1) as f64
        };
        Figures {
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

/// The order of the datapoints for a seed.
pub fn order(datapoints: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..datapoints).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    order
}

/// Replays a matrix over seeds.
///
/// # Errors
///
/// The selector cannot be made.
pub fn replay(
    matrix: &Matrix,
    make: &Make<'_>,
    seeds: std::ops::Range<u64>,
) -> Result<Figures, OptionsError> {
    let truth = matrix.truth();
    let best = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let whole: f64 = matrix.costs().iter().sum();
    let mut sums = Figures { seeds: seeds.end - seeds.start, ..Figures::default() };
    for seed in seeds {
        let order = order(matrix.space.datapoints(), seed);
        let mut selector = make(&matrix.space, seed)?;
        let seen = |cell: Cell| matrix.cells[cell.combo][order[cell.datapoint]].clone();
        let (objective, budget) = (Objective::default(), SearchBudget::default());
        let found = select::replay(&matrix.space, selector.as_mut(), seen, objective, budget);
        let Ok(found) = found else {
            // Whoever chooses nobody has found nothing.
            sums.regret += best;
            continue;
        };
        let regret = best - truth[found.winner];
        sums.find_rate += f64::from(u8::from(regret <= EPSILON + 1e-9));
        sums.regret += regret;
        sums.cells += found.cells as f64;
        sums.cost_share += if whole > 0.0 { found.spent.as_dollars() / whole } else { 0.0 };
        sums.claimed += found.confidence.unwrap_or(0.0);
    }
    let count = sums.seeds.max(1) as f64;
    Ok(Figures {
        find_rate: sums.find_rate / count,
        regret: sums.regret / count,
        cells: sums.cells / count,
        cells_share: sums.cells / count / matrix.space.cells() as f64,
        cost_share: sums.cost_share / count,
        claimed: sums.claimed / count,
        seeds: sums.seeds,
    })
}
