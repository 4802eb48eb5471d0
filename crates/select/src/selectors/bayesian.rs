//! Bayesian optimisation: a Gaussian process chooses the next combinations.

use super::error::{OptionsError, at_least, fraction, part};
use super::plan::{Draw, Plan, random};
use crate::evidence::Evidence;
use crate::gp::{GaussianProcess, KernelShape, log_expected_improvement};
use crate::selector::{Selector, SelectorStep};
use crate::space::Space;
use crate::winner;
use rand::seq::SliceRandom;

/// Options of [`Bayesian`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BayesianConfig {
    /// Share of the combinations to evaluate, rounded up; at least two are evaluated.
    pub fraction: f64,
    /// Combinations evaluated between two fits of the model.
    pub batch: usize,
}

impl Default for BayesianConfig {
    fn default() -> BayesianConfig {
        BayesianConfig { fraction: 0.25, batch: 1 }
    }
}

/// Evaluates random combinations first, then those with the largest expected improvement.
#[derive(Debug, Clone)]
pub struct Bayesian {
    plan: Plan,
    space: Space,
    batch: usize,
    /// Number of combinations to evaluate.
    budget: usize,
    /// Number of random combinations at the start.
    first: usize,
    /// All combinations in random order; requested ones come first.
    order: Vec<usize>,
    requested: usize,
    /// Shape of the kernel, and the number of points it was fitted to.
    shape: Option<(KernelShape, usize)>,
}

impl Bayesian {
    /// Creates the selector and draws its first combinations.
    ///
    /// # Errors
    ///
    /// A fraction outside (0, 1], or empty batches.
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
            first: budget.min(random_combinations(space)),
            order,
            requested: 0,
            shape: None,
            space: space.clone(),
        })
    }

    /// Sorts the combinations that were not requested by expected improvement. Without a model they stay
    /// in random order.
    fn sort(&mut self, evidence: &Evidence) {
        let (requested, rest) = self.order.split_at_mut(self.requested);
        // A combination with nothing but errors counts towards the budget, but has no value to fit.
        let known = requested.iter().filter_map(|combo| {
            Some((self.space.members(*combo).to_vec(), winner::adjusted_mean(evidence, *combo)?))
        });
        let (points, values): (Vec<Vec<u32>>, Vec<f64>) = known.unzip();
        let Some(best) = values.iter().copied().max_by(f64::total_cmp) else { return };
        if points.len() < 2 {
            return;
        }
        // Fitting the shape is the expensive part, and a few more points change it little.
        let shape = match self.shape.take() {
            Some((shape, count)) if points.len() < count + count.div_ceil(10) => (shape, count),
            _ => (KernelShape::most_likely(&points, &values), points.len()),
        };
        let process = GaussianProcess::new(points, &values, shape.0.clone());
        self.shape = Some(shape);
        let Some(process) = process else { return };
        let mut gains: Vec<(f64, usize)> = (rest.iter())
            .map(|combo| {
                let (mean, variance) = process.predict(self.space.members(*combo));
                (log_expected_improvement(mean, variance, best), *combo)
            })
            .collect();
        gains.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        for (entry, (_, combo)) in rest.iter_mut().zip(gains) {
            *entry = combo;
        }
    }
}

/// Number of random combinations before the first fit of the model.
fn random_combinations(space: &Space) -> usize {
    2 * (space.roles().len() + 1)
}

impl Selector for Bayesian {
    fn name(&self) -> &'static str {
        "bayesian"
    }

    fn caveat(&self, evidence: &Evidence) -> Option<&'static str> {
        let chosen = self.order.get(self.first..self.requested).unwrap_or_default();
        let is_random = chosen.iter().all(|combo| evidence.stats(*combo).n == 0);
        (is_random && self.first < self.plan.combos)
            .then_some("all combinations were chosen at random, none by the model")
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        while self.requested < self.budget {
            let more = if self.requested == 0 {
                self.first
            } else {
                self.sort(evidence);
                self.batch.min(self.budget - self.requested)
            };
            let next = &self.order[self.requested..self.requested + more];
            let round = self.plan.full_round(evidence, next.iter().copied());
            self.requested += more;
            if !round.cells.is_empty() {
                return SelectorStep::Evaluate(round);
            }
        }
        let mut reason =
            format!("{} of {} combinations were evaluated", self.requested, self.plan.combos);
        if self.first == self.budget && self.budget < self.plan.combos {
            let needed = random_combinations(&self.space) as f64 / self.plan.combos as f64;
            reason.push_str(", all of them at random");
            if needed < 1.0 {
                let fraction = ((100.0 * needed).floor() + 1.0) / 100.0;
                let hint = format!(": the model chooses some if `fraction` is at least {fraction}");
                reason.push_str(&hint);
            }
        }
        let mut requested = self.order[..self.requested].to_vec();
        requested.sort_unstable();
        Plan::choose(evidence, requested, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;
    use crate::testing::{chosen, filled, grid, run};

    fn new_selector(space: &Space, fraction: f64, batch: usize) -> Bayesian {
        Bayesian::new(space, &BayesianConfig { fraction, batch }, 6).unwrap()
    }

    #[test]
    fn random_combinations_come_first_then_batches() {
        // Sizes of roles, fraction, batch, size of the first round, and all combinations evaluated.
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
            let (rounds, _, evidence) =
                run(&space, &mut new_selector(&space, fraction, batch), score);
            assert_eq!((rounds[0].cells.len(), evidence.cells()), (2 * first, 2 * all));
            let full = rounds[1..].iter().filter(|round| round.cells.len() == 2 * batch).count();
            assert_eq!(full, (all - first) / batch);
        }
    }

    #[test]
    fn combination_similar_to_the_best_is_next() {
        let space = grid(&[3, 3], 2);
        let mut selector = new_selector(&space, 1.0, 1);
        // The first role decides: 0.1 with candidate 0, 0.8 with candidate 1.
        let mut rows = vec![vec![]; 9];
        for (combo, score) in [(0, 0.1), (1, 0.12), (3, 0.8), (4, 0.82)] {
            rows[combo] = vec![Some(score); 2];
        }
        (selector.order, selector.requested) = (vec![0, 1, 3, 4, 2, 6, 7, 8, 5], 4);
        selector.sort(&filled(&space, &rows));
        // 5 has the better candidate for the first role; 2 has the worst known one.
        assert_eq!((selector.order[4], selector.order[8]), (5, 2));
    }

    #[test]
    fn finds_the_best_more_often_than_chance() {
        let space = grid(&[4, 4, 4], 1);
        let score = |cell: Cell| {
            let members = space.members(cell.combo).iter();
            Some(members.zip([0.15, 0.1, 0.05]).map(|(at, by)| f64::from(*at) * by).sum::<f64>())
        };
        // A random quarter of the combinations contains the best in five of twenty cases.
        let found = (0..20).filter(|seed| {
            let mut selector = Bayesian::new(&space, &BayesianConfig::default(), *seed).unwrap();
            chosen(&run(&space, &mut selector, score).1) == 63
        });
        assert!(found.count() >= 15);
    }

    #[test]
    fn errors_alone_have_no_winner() {
        let space = grid(&[4, 4], 2);
        let (_, end, evidence) = run(&space, &mut new_selector(&space, 0.5, 1), |_| None);
        assert!(matches!(end, SelectorStep::NoWinner(_)));
        assert_eq!(evidence.cells(), 16);
    }
}
