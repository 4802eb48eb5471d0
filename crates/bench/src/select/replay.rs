//! Selectors on matrices, over and over in other orders.

use super::matrix::Matrix;
use bakeoff_select::{Choice, Evidence, Objective, Selector, Space, Step};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// How far from the best a winner may be.
pub const EPSILON: f64 = 0.01;

/// Rounds after which a selector is taken to be stuck.
const MOST_ROUNDS: usize = 100_000;

/// Makes a selector for a space, by seed.
pub type Make<'a> = dyn Fn(&Space, u64) -> Box<dyn Selector> + Sync + 'a;

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
    /// Rounds until the choice.
    pub rounds: f64,
    /// Searches.
    pub seeds: u64,
}

/// One search.
#[derive(Debug)]
pub struct Search {
    /// What was chosen.
    pub choice: Choice,
    /// What was paid for.
    pub evidence: Evidence,
    /// Rounds until the choice.
    pub rounds: usize,
}

/// Replays a matrix with the datapoints in another order. `None` when the selector never chooses.
pub fn search(matrix: &Matrix, order: &[usize], selector: &mut dyn Selector) -> Option<Search> {
    let mut evidence = Evidence::new(&matrix.space, Objective::default());
    for rounds in 0..MOST_ROUNDS {
        match selector.next(&evidence) {
            Step::Choose(choice) => return Some(Search { choice, evidence, rounds }),
            Step::GiveUp(_) => return None,
            Step::Evaluate(round) => {
                for cell in round.cells {
                    let seen = &matrix.cells[cell.combo][order[cell.datapoint]];
                    evidence.add(cell, seen.clone());
                }
            }
        }
    }
    None
}

/// The order of the datapoints for a seed.
pub fn order(datapoints: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..datapoints).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    order
}

/// Replays a matrix over seeds.
pub fn replay(matrix: &Matrix, make: &Make<'_>, seeds: std::ops::Range<u64>) -> Figures {
    let truth = matrix.truth();
    let best = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let whole: f64 = matrix.costs().iter().sum();
    let mut sums = Figures { seeds: seeds.end - seeds.start, ..Figures::default() };
    for seed in seeds {
        let order = order(matrix.space.datapoints(), seed);
        let mut selector = make(&matrix.space, seed);
        let Some(found) = search(matrix, &order, selector.as_mut()) else { continue };
        let regret = best - truth[found.choice.combo];
        sums.find_rate += f64::from(u8::from(regret <= EPSILON + 1e-9));
        sums.regret += regret;
        sums.cells += found.evidence.cells() as f64;
        sums.cost_share += found.evidence.spent() / whole;
        sums.claimed += found.choice.confidence.unwrap_or(0.0);
        sums.rounds += found.rounds as f64;
    }
    let count = sums.seeds.max(1) as f64;
    Figures {
        find_rate: sums.find_rate / count,
        regret: sums.regret / count,
        cells: sums.cells / count,
        cells_share: sums.cells / count / matrix.space.cells() as f64,
        cost_share: sums.cost_share / count,
        claimed: sums.claimed / count,
        rounds: sums.rounds / count,
        seeds: sums.seeds,
    }
}
