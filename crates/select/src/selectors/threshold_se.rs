//! Classification of each combination against a threshold.

use super::arm_elimination::first_round;
use super::error::{OptionsError, at_least};
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Elimination, Selector, SelectorChoice, SelectorStep};
use crate::space::Space;

/// Options of [`ThresholdSe`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ThresholdSeConfig {
    /// Mean that is good enough.
    pub threshold: f64,
    /// Datapoints of the first round; defaults to a tenth of all.
    pub first: Option<usize>,
    /// Half width of the interval in standard errors.
    pub width: f64,
}

impl Default for ThresholdSeConfig {
    fn default() -> ThresholdSeConfig {
        ThresholdSeConfig { threshold: 0.75, first: None, width: 1.0 }
    }
}

/// Evaluates each combination until its interval excludes the threshold.
///
/// Chooses the best combination that is not below the threshold, or the best of all if every one is.
#[derive(Debug, Clone)]
pub struct ThresholdSe {
    plan: Plan,
    config: ThresholdSeConfig,
    /// Combinations that are not classified yet.
    active: Vec<usize>,
    requested: usize,
    /// Combinations below the threshold.
    eliminations: Vec<Elimination>,
}

impl ThresholdSe {
    /// Creates the selector with all combinations unclassified.
    ///
    /// # Errors
    ///
    /// A threshold that is not between 0 and 1, or a negative width.
    pub fn new(
        space: &Space,
        config: ThresholdSeConfig,
        seed: u64,
    ) -> Result<ThresholdSe, OptionsError> {
        if !(config.threshold > 0.0 && config.threshold < 1.0) {
            return Err(OptionsError::Threshold(config.threshold));
        }
        at_least("width", config.width, 0.0)?;
        if config.first == Some(0) {
            at_least("first", 0.0, 1.0)?;
        }
        let active = (0..space.combos()).collect();
        let plan = Plan::new(space, seed);
        Ok(ThresholdSe { plan, config, active, requested: 0, eliminations: Vec::new() })
    }

    fn classify(&mut self, evidence: &Evidence) {
        let (config, eliminations) = (&self.config, &mut self.eliminations);
        self.active.retain(|combo| {
            let stats = evidence.stats(*combo);
            if stats.n == 0 {
                return true;
            }
            let half = config.width * stats.standard_error();
            let below = stats.mean + half < config.threshold;
            if below {
                let after_cells = evidence.cells();
                eliminations.push(Elimination { combo: *combo, after_cells, by: None });
            }
            !below && stats.mean - half <= config.threshold
        });
    }

    fn decide(&mut self, evidence: &Evidence) -> SelectorStep {
        let is_below = |combo: &usize| self.eliminations.iter().any(|gone| gone.combo == *combo);
        let good: Vec<usize> = (0..self.plan.combos).filter(|combo| !is_below(combo)).collect();
        let threshold = self.config.threshold;
        let step = Plan::choose(evidence, good, format!("it is not below {threshold}"));
        if matches!(step, SelectorStep::Choose(_)) {
            return step;
        }
        let reason = format!("all are below {threshold}; it is the best of them");
        let step = Plan::choose(evidence, 0..self.plan.combos, reason);
        if let SelectorStep::Choose(SelectorChoice { combo, .. }) = &step {
            // The chosen combination does not count as eliminated.
            self.eliminations.retain(|gone| gone.combo != *combo);
        }
        step
    }
}

impl Selector for ThresholdSe {
    fn name(&self) -> &'static str {
        "threshold_se"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        if self.requested > 0 {
            self.classify(evidence);
        }
        while self.requested < self.plan.order.len() && !self.active.is_empty() {
            let more = match self.requested {
                0 => first_round(self.config.first, self.plan.order.len()),
                _ => 1,
            };
            let end = self.requested + more;
            let round = self.plan.round(evidence, self.active.iter().copied(), self.requested..end);
            self.requested = end;
            if !round.cells.is_empty() {
                return SelectorStep::Evaluate(round);
            }
        }
        self.decide(evidence)
    }

    fn eliminations(&self) -> &[Elimination] {
        &self.eliminations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, run, space};

    #[test]
    fn classified_combination_is_not_evaluated_further() {
        let space = space(3, 10);
        let config = ThresholdSeConfig { first: Some(2), ..Default::default() };
        let mut selector = ThresholdSe::new(&space, config, 2).unwrap();
        let order = selector.plan.order.clone();
        // 0.9 ± 0 is above and 0.2 ± 0 below after two. The third has 1, 0, 1, 1: 0.5 ± 0.5,
        // 0.667 ± 0.333 and 0.75 ± 0.25 all contain 0.75; then 0s: 0.6 ± 0.245, 0.5 ± 0.224 < 0.75.
        let scores = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let (rounds, end, _) = run(&space, &mut selector, |cell| {
            Some(match cell.combo {
                0 => 0.9,
                1 => 0.2,
                _ => scores[order.iter().position(|at| *at == cell.datapoint).unwrap()],
            })
        });
        let sizes: Vec<usize> = rounds.iter().map(|round| round.cells.len()).collect();
        assert_eq!(sizes, [6, 1, 1, 1, 1]);
        let gone = |combo, after_cells| Elimination { combo, after_cells, by: None };
        assert_eq!(selector.eliminations(), [gone(1, 6), gone(2, 10)]);
        assert_eq!(chosen(&end), 0);
    }

    #[test]
    fn best_is_chosen_if_all_are_below_the_threshold() {
        let space = space(3, 10);
        let mut selector = ThresholdSe::new(&space, ThresholdSeConfig::default(), 2).unwrap();
        let score = |cell: crate::Cell| Some([0.1, 0.3, 0.2][cell.combo]);
        let (_, end, _) = run(&space, &mut selector, score);
        assert_eq!(chosen(&end), 1);
        let gone: Vec<usize> = selector.eliminations().iter().map(|gone| gone.combo).collect();
        assert_eq!(gone, [0, 2]);
    }

    #[test]
    fn errors_alone_have_no_winner() {
        let space = space(2, 10);
        let mut selector = ThresholdSe::new(&space, ThresholdSeConfig::default(), 2).unwrap();
        let (_, end, evidence) = run(&space, &mut selector, |_| None);
        assert!(matches!(end, SelectorStep::NoWinner(_)));
        assert_eq!(evidence.cells(), 20);
    }

    #[test]
    fn threshold_out_of_range_is_rejected() {
        for threshold in [0.0, 1.0, 75.0, -1.0, f64::NAN] {
            let config = ThresholdSeConfig { threshold, ..Default::default() };
            let error = ThresholdSe::new(&space(2, 2), config, 1).unwrap_err();
            assert!(matches!(error, OptionsError::Threshold(_)));
        }
    }
}
