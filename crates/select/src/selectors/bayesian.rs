//! A model of what combinations are worth says which to try next.

use super::error::{OptionsError, at_least, fraction, part};
use super::plan::{Draw, Plan, random};
use crate::evidence::Evidence;
use crate::gp::{Process, Shape, log_expected_improvement};
use crate::selector::{Selector, Step};
use crate::space::Space;
use crate::winner;
use rand::seq::SliceRandom;

/// How many to try.
#[derive(Debug, Clone, PartialEq)]
pub struct BayesianConfig {
    /// Share of the combinations, rounded up; at least two are tried.
    pub fraction: f64,
    /// Combinations that are tried between two looks at the model.
    pub batch: usize,
}

impl Default for BayesianConfig {
    fn default() -> BayesianConfig {
        BayesianConfig { fraction: 0.25, batch: 1 }
    }
}

/// Tries some combinations at random, and then those with the largest expected improvement.
#[derive(Debug, Clone)]
pub struct Bayesian {
    plan: Plan,
    space: Space,
    batch: usize,
    /// Combinations to try.
    budget: usize,
    /// Those of them to try at random first.
    first: usize,
    /// All combinations, in random order; those that were tried are in front.
    order: Vec<usize>,
    tried: usize,
    /// The shape of the model, and of how many points it was found.
    shape: Option<(Shape, usize)>,
}

impl Bayesian {
    /// Draws the first ones.
    ///
    /// # Errors
    ///
    /// A fraction outside of (0, 1], or empty batches.
    pub fn new(
        space: &Space,
        config: &BayesianConfig,
        seed: u64,
    ) -> Result<Bayesian, OptionsError> {
        at_least("batch", config.batch as f64, 1.0)?;
        let budget = part(fraction(config.fraction)?, space.combos()).max(2).min(space.combos());
        let mut order: Vec<usize> = (0..space.combos()).collect();
        order.shuffle(&mut random(seed, Draw::Combos));
        Ok(Bayesian {
            plan: Plan::new(space, seed),
            batch: config.batch,
            budget,
            first: budget.min(2 * (space.roles().len() + 1)),
            order,
            tried: 0,
            shape: None,
            space: space.clone(),
        })
    }

    /// Brings the most promising of those that were not tried to the front of them. Without a model
    /// they stay in random order.
    fn sort(&mut self, evidence: &Evidence) {
        let (tried, untried) = self.order.split_at_mut(self.tried);
        // Who only errs takes its place in the budget, but has no value to learn from.
        let known = tried.iter().filter_map(|combo| {
            Some((self.space.members(*combo).to_vec(), winner::standing(evidence, *combo)?))
        });
        let (points, values): (Vec<Vec<u32>>, Vec<f64>) = known.unzip();
        let Some(best) = values.iter().copied().max_by(f64::total_cmp) else { return };
        if points.len() < 2 {
            return;
        }
        // The search for a shape is the dear part, and a few points more do not change it much.
        let shape = match self.shape.take() {
            Some((shape, count)) if points.len() < count + count.div_ceil(10) => (shape, count),
            _ => (Shape::likeliest(&points, &values), points.len()),
        };
        let process = Process::new(points, &values, shape.0.clone());
        self.shape = Some(shape);
        let Some(process) = process else { return };
        let mut gains: Vec<(f64, usize)> = (untried.iter())
            .map(|combo| {
                let (mean, variance) = process.predict(self.space.members(*combo));
                (log_expected_improvement(mean, variance, best), *combo)
            })
            .collect();
        gains.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        for (place, (_, combo)) in untried.iter_mut().zip(gains) {
            *place = combo;
        }
    }
}

impl Selector for Bayesian {
    fn name(&self) -> &'static str {
        "bayesian"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        while self.tried < self.budget {
            let more = if self.tried == 0 {
                self.first
            } else {
                self.sort(evidence);
                self.batch.min(self.budget - self.tried)
            };
            let wanted = &self.order[self.tried..self.tried + more];
            let round = self.plan.whole(evidence, wanted.iter().copied());
            self.tried += more;
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
        }
        let reason = format!("{} of {} combinations were tried", self.tried, self.plan.combos);
        let mut tried = self.order[..self.tried].to_vec();
        tried.sort_unstable();
        Plan::choose(evidence, tried, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;
    use crate::testing::{chosen, filled, grid, run};

    fn made(space: &Space, fraction: f64, batch: usize) -> Bayesian {
        Bayesian::new(space, &BayesianConfig { fraction, batch }, 6).unwrap()
    }

    #[test]
    fn some_are_drawn_and_then_one_at_a_time() {
        // Sizes of roles, share, the first round, and all combinations tried.
        for (sizes, fraction, batch, first, all) in [
            (&[4, 4][..], 0.5, 1, 6, 8),
            (&[4, 4, 4], 0.25, 1, 8, 16),
            (&[4, 4, 4], 0.25, 3, 8, 16),
            (&[9], 0.25, 1, 3, 3),
            (&[3], 0.01, 1, 2, 2),
            (&[1], 0.5, 1, 1, 1),
        ] {
            let space = grid(sizes, 2);
            let score = |cell: Cell| Some(cell.combo as f64 / 100.0);
            let (rounds, _, evidence) = run(&space, &mut made(&space, fraction, batch), score);
            assert_eq!((rounds[0].cells.len(), evidence.cells()), (2 * first, 2 * all));
            let full = rounds[1..].iter().filter(|round| round.cells.len() == 2 * batch).count();
            assert_eq!(full, (all - first) / batch);
        }
    }

    #[test]
    fn what_is_alike_to_the_best_is_tried_next() {
        let space = grid(&[3, 3], 2);
        let mut selector = made(&space, 1.0, 1);
        // Who has the first role decides: 0.1 with 0, 0.8 with 1.
        let mut rows = vec![vec![]; 9];
        for (combo, score) in [(0, 0.1), (1, 0.12), (3, 0.8), (4, 0.82)] {
            rows[combo] = vec![Some(score); 2];
        }
        (selector.order, selector.tried) = (vec![0, 1, 3, 4, 2, 6, 7, 8, 5], 4);
        selector.sort(&filled(&space, &rows));
        // 5 has the better first role; 2 the worse, and nothing else is known to be as bad.
        assert_eq!((selector.order[4], selector.order[8]), (5, 2));
    }

    #[test]
    fn it_finds_more_than_chance_does() {
        let space = grid(&[4, 4, 4], 1);
        let score = |cell: Cell| {
            let members = space.members(cell.combo).iter();
            Some(members.zip([0.15, 0.1, 0.05]).map(|(at, by)| f64::from(*at) * by).sum::<f64>())
        };
        // A quarter of the combinations holds the best of them in five of twenty cases.
        let found = (0..20).filter(|seed| {
            let mut selector = Bayesian::new(&space, &BayesianConfig::default(), *seed).unwrap();
            chosen(&run(&space, &mut selector, score).1) == 63
        });
        assert!(found.count() >= 15);
    }

    #[test]
    fn errors_end_it() {
        let space = grid(&[4, 4], 2);
        let (_, end, evidence) = run(&space, &mut made(&space, 0.5, 1), |_| None);
        assert!(matches!(end, Step::GiveUp(_)));
        assert_eq!(evidence.cells(), 16);
    }
}
