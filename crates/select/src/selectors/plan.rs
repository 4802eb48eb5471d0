//! What all selectors start from: who there is, and the order of the datapoints.

use crate::evidence::Evidence;
use crate::selector::{Choice, Round, Step};
use crate::space::{Cell, Space};
use crate::winner;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// The combinations and the order in which datapoints are visited.
///
/// The order is shuffled, since data sets are often sorted by kind or difficulty, and the same for
/// all combinations, so that they are compared on the same datapoints.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) combos: usize,
    pub(crate) order: Vec<usize>,
}

/// What is drawn with one seed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Draw {
    Order,
    Combos,
}

/// Numbers for one purpose: two purposes with one seed are independent.
pub(crate) fn random(seed: u64, draw: Draw) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(draw as u64);
    random
}

impl Plan {
    pub(crate) fn new(space: &Space, seed: u64) -> Plan {
        let mut order: Vec<usize> = (0..space.datapoints()).collect();
        order.shuffle(&mut random(seed, Draw::Order));
        Plan { combos: space.combos(), order }
    }

    /// The cells of `combos` at these places of the order that nobody has paid for.
    pub(crate) fn round(
        &self,
        evidence: &Evidence,
        combos: impl IntoIterator<Item = usize>,
        places: std::ops::Range<usize>,
    ) -> Round {
        let places = self.order.get(places).unwrap_or_default();
        let mut cells = Vec::new();
        for combo in combos {
            let row = places.iter().map(|datapoint| Cell { combo, datapoint: *datapoint });
            cells.extend(row.filter(|cell| !evidence.is_visited(*cell)));
        }
        Round { cells, batch: places.len() }
    }

    /// All that is left of these combinations.
    pub(crate) fn whole(
        &self,
        evidence: &Evidence,
        combos: impl IntoIterator<Item = usize>,
    ) -> Round {
        self.round(evidence, combos, 0..self.order.len())
    }

    /// What is decided when `combos` are left.
    pub(crate) fn choose(
        evidence: &Evidence,
        combos: impl IntoIterator<Item = usize>,
        reason: impl Into<String>,
    ) -> Step {
        match winner::best(evidence, combos) {
            Some(combo) => Step::Choose(Choice { combo, confidence: None, reason: reason.into() }),
            None => Step::GiveUp("no cell that was paid for gave a score".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::space;

    #[test]
    fn the_seed_alone_fixes_the_order() {
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
