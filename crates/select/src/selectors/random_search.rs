//! A random sample of combinations on all datapoints.

use super::error::{OptionsError, fraction, part};
use super::plan::{Draw, Plan, random};
use crate::evidence::Evidence;
use crate::selector::{Selector, SelectorStep};
use crate::space::Space;
use rand::seq::SliceRandom;

/// Options of [`RandomSearch`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RandomSearchConfig {
    /// Share of the combinations to evaluate, rounded up.
    pub fraction: f64,
}

impl Default for RandomSearchConfig {
    fn default() -> RandomSearchConfig {
        RandomSearchConfig { fraction: 0.25 }
    }
}

/// Evaluates a random share of the combinations on all datapoints.
#[derive(Debug, Clone)]
pub struct RandomSearch {
    plan: Plan,
    sample: Vec<usize>,
    has_budget: bool,
}

impl RandomSearch {
    /// Creates the selector and draws its combinations.
    ///
    /// # Errors
    ///
    /// The fraction is not in (0, 1].
    pub fn new(
        space: &Space,
        config: &RandomSearchConfig,
        seed: u64,
    ) -> Result<RandomSearch, OptionsError> {
        let count = part(fraction(config.fraction)?, space.combos());
        let mut sample: Vec<usize> = (0..space.combos()).collect();
        sample.shuffle(&mut random(seed, Draw::Combos));
        sample.truncate(count);
        sample.sort_unstable();
        Ok(RandomSearch { plan: Plan::new(space, seed), sample, has_budget: false })
    }

    /// Sets whether a budget may end the search; see [`BruteForce::with_budget`](super::BruteForce::with_budget).
    #[must_use]
    pub fn with_budget(self, has_budget: bool) -> RandomSearch {
        RandomSearch { has_budget, ..self }
    }
}

impl Selector for RandomSearch {
    fn name(&self) -> &'static str {
        "random_search"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        let combos = self.sample.iter().copied();
        let round = match self.has_budget {
            true => self.plan.next_datapoints(evidence, combos),
            false => self.plan.full_round(evidence, combos),
        };
        if round.cells.is_empty() {
            let reason = format!(
                "{} of {} combinations were evaluated",
                self.sample.len(),
                self.plan.combos
            );
            return Plan::choose(evidence, self.sample.iter().copied(), reason);
        }
        SelectorStep::Evaluate(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, run, space};

    #[test]
    fn sample_is_evaluated_on_all_datapoints() {
        for (combos, fraction, expected) in
            [(9, 0.25, 3), (10, 0.3, 3), (8, 0.25, 2), (5, 1.0, 5), (5, 0.001, 1), (100, 0.07, 7)]
        {
            let space = space(combos, 6);
            let config = RandomSearchConfig { fraction };
            let mut selector = RandomSearch::new(&space, &config, 7).unwrap();
            let sample = selector.sample.clone();
            assert_eq!(sample.len(), expected, "{fraction} of {combos}");
            let (_, end, evidence) = run(&space, &mut selector, |cell| Some(cell.combo as f64));
            assert_eq!(evidence.cells(), expected * 6);
            assert_eq!(Some(&chosen(&end)), sample.last());
        }
    }

    #[test]
    fn different_seeds_draw_different_samples() {
        let space = space(100, 1);
        let draw =
            |seed| RandomSearch::new(&space, &RandomSearchConfig::default(), seed).unwrap().sample;
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn fraction_out_of_range_is_rejected() {
        for fraction in [0.0, -0.5, 1.5, f64::NAN] {
            let config = RandomSearchConfig { fraction };
            let error = RandomSearch::new(&space(4, 4), &config, 1).unwrap_err();
            assert!(matches!(error, OptionsError::Fraction(_)));
        }
    }
}
