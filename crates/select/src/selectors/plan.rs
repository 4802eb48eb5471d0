//! Combinations and datapoint order shared by all selectors.

use crate::evidence::Evidence;
use crate::selector::{EvaluationRound, SelectorChoice, SelectorStep};
use crate::space::{Cell, Space};
use crate::winner;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Number of combinations, and the order in which datapoints are visited.
///
/// The order is shuffled, because datasets are often sorted by kind or difficulty. It is the same for
/// all combinations, so they are compared on the same datapoints.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) combos: usize,
    pub(crate) order: Vec<usize>,
}

/// Purpose of random numbers drawn with one seed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Draw {
    Order,
    Combos,
}

/// Returns the generator for one purpose; those of two purposes are independent.
pub(crate) fn random(seed: u64, draw: Draw) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(draw as u64);
    random
}

/// Minimum number of cells of a round that a budget may end: the default concurrency limit.
const MIN_ROUND_CELLS: usize = 20;

/// Reason for a search without a winner.
pub(crate) const NO_SCORES: &str = "no evaluated cell has a score";

impl Plan {
    pub(crate) fn new(space: &Space, seed: u64) -> Plan {
        let mut order: Vec<usize> = (0..space.datapoints()).collect();
        order.shuffle(&mut random(seed, Draw::Order));
        Plan { combos: space.combos(), order }
    }

    /// Returns the unvisited cells of `combos` at these positions of the order.
    pub(crate) fn round(
        &self,
        evidence: &Evidence,
        combos: impl IntoIterator<Item = usize>,
        positions: std::ops::Range<usize>,
    ) -> EvaluationRound {
        let datapoints = self.order.get(positions).unwrap_or_default();
        let mut cells = Vec::new();
        for combo in combos {
            let row = datapoints.iter().map(|datapoint| Cell { combo, datapoint: *datapoint });
            cells.extend(row.filter(|cell| !evidence.is_visited(*cell)));
        }
        EvaluationRound { cells, batch: datapoints.len() }
    }

    /// Returns all unvisited cells of these combinations.
    pub(crate) fn full_round(
        &self,
        evidence: &Evidence,
        combos: impl IntoIterator<Item = usize>,
    ) -> EvaluationRound {
        self.round(evidence, combos, 0..self.order.len())
    }

    /// Returns the unvisited cells of the next few datapoints, at first of one: if a budget ends the search, all
    /// combinations have seen the same datapoints, except for the last few.
    pub(crate) fn next_datapoints(
        &self,
        evidence: &Evidence,
        combos: impl IntoIterator<Item = usize> + Clone,
    ) -> EvaluationRound {
        let enough = if evidence.cells() == 0 { 1 } else { MIN_ROUND_CELLS };
        let mut round = EvaluationRound { cells: Vec::new(), batch: 0 };
        for position in 0..self.order.len() {
            if round.cells.len() >= enough {
                break;
            }
            let next = self.round(evidence, combos.clone(), position..position + 1);
            round.batch += usize::from(!next.cells.is_empty());
            round.cells.extend(next.cells);
        }
        round
    }

    /// Returns the final step if `combos` remain.
    pub(crate) fn choose(
        evidence: &Evidence,
        combos: impl IntoIterator<Item = usize>,
        reason: impl Into<String>,
    ) -> SelectorStep {
        match winner::best(evidence, combos) {
            Some(combo) => {
                let reason = reason.into();
                SelectorStep::Choose(SelectorChoice { combo, confidence: None, reason })
            }
            None => SelectorStep::NoWinner(NO_SCORES.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::space;

    #[test]
    fn seed_fixes_the_datapoint_order() {
        let space = space(2, 50);
        let order = |seed| Plan::new(&space, seed).order;
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), (0..50).collect::<Vec<_>>());
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
