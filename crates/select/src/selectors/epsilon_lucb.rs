//! Next datapoints for the leader and its strongest rival, until their bounds separate.

use super::error::{OptionsError, at_least};
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Selector, SelectorStep};
use crate::space::Space;
use crate::winner;

/// Options of [`EpsilonLucb`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EpsilonLucbConfig {
    /// Largest amount by which the rival may be better.
    pub epsilon: f64,
    /// Datapoints of the first round, for each combination.
    pub first: usize,
    /// Half width of the bounds in standard errors.
    pub width: f64,
}

impl Default for EpsilonLucbConfig {
    fn default() -> EpsilonLucbConfig {
        EpsilonLucbConfig { epsilon: 0.01, first: 1, width: 1.0 }
    }
}

/// Evaluates the combination with the best mean and the one with the highest upper bound among the
/// others, until the bounds separate.
#[derive(Debug, Clone)]
pub struct EpsilonLucb {
    plan: Plan,
    config: EpsilonLucbConfig,
    requested: usize,
}

impl EpsilonLucb {
    /// Creates the selector.
    ///
    /// # Errors
    ///
    /// A negative ε or width, or an empty first round.
    pub fn new(
        space: &Space,
        config: EpsilonLucbConfig,
        seed: u64,
    ) -> Result<EpsilonLucb, OptionsError> {
        at_least("epsilon", config.epsilon, 0.0)?;
        at_least("width", config.width, 0.0)?;
        at_least("first", config.first as f64, 1.0)?;
        Ok(EpsilonLucb { plan: Plan::new(space, seed), config, requested: 0 })
    }

    /// Returns the leader, its rival, and the amount by which the rival could be better.
    fn pair(&self, evidence: &Evidence) -> Option<(usize, usize, f64)> {
        let leader = winner::best(evidence, 0..self.plan.combos)?;
        let upper = |combo: usize| winner::winning_bound(evidence, combo, self.config.width);
        let others = (0..self.plan.combos).filter(|combo| *combo != leader);
        let (rival, bound) = others.map(|combo| (combo, upper(combo))).reduce(|first, other| {
            if other.1.total_cmp(&first.1).is_gt() { other } else { first }
        })?;
        let stats = evidence.stats(leader);
        let lower = stats.mean - self.config.width * stats.standard_error();
        Some((leader, rival, bound - lower))
    }
}

impl Selector for EpsilonLucb {
    fn name(&self) -> &'static str {
        "epsilon_lucb"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        let all = 0..self.plan.combos;
        let datapoints = self.plan.order.len();
        if self.requested == 0 {
            self.requested = self.config.first.min(datapoints);
            let round = self.plan.round(evidence, all.clone(), 0..self.requested);
            if !round.cells.is_empty() {
                return SelectorStep::Evaluate(round);
            }
        }
        loop {
            let Some((leader, rival, gap)) = self.pair(evidence) else {
                if self.requested >= datapoints || winner::best(evidence, all.clone()).is_some() {
                    return Plan::choose(evidence, all, "there is no other combination");
                }
                // Every cell errored so far, so all combinations get the next datapoint.
                let round =
                    self.plan.round(evidence, all.clone(), self.requested..self.requested + 1);
                self.requested += 1;
                if round.cells.is_empty() {
                    continue;
                }
                return SelectorStep::Evaluate(round);
            };
            if gap <= self.config.epsilon {
                let reason = format!("no other can be better by more than {}", self.config.epsilon);
                return Plan::choose(evidence, all, reason);
            }
            if self.requested >= datapoints {
                return Plan::choose(evidence, all, "all datapoints were evaluated");
            }
            let round =
                self.plan.round(evidence, [leader, rival], self.requested..self.requested + 1);
            self.requested += 1;
            if !round.cells.is_empty() {
                return SelectorStep::Evaluate(round);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, filled, run, space};

    fn new_selector(space: &Space, config: EpsilonLucbConfig) -> EpsilonLucb {
        EpsilonLucb::new(space, config, 5).unwrap()
    }

    #[test]
    fn leader_is_compared_with_the_highest_upper_bound() {
        let space = space(3, 10);
        // 0.75 ± 0.25, 0.5 ± 0.289 and 0.6 ± 0: leader 0, upper bounds of the rest 0.788675 and 0.6.
        let rows = [
            [1.0, 1.0, 1.0, 0.0].map(Some).to_vec(),
            [1.0, 1.0, 0.0, 0.0].map(Some).to_vec(),
            [0.6, 0.6, 0.6, 0.6].map(Some).to_vec(),
        ];
        let selector = new_selector(&space, EpsilonLucbConfig::default());
        let (leader, rival, gap) = selector.pair(&filled(&space, &rows)).unwrap();
        assert_eq!((leader, rival), (0, 1));
        // √(1/3)/2 = 0.288675; deviation of the leader 0.5, standard error 0.25.
        assert!((gap - (0.5 + 0.288_675_134_594_812_9 - 0.5)).abs() < 1e-12);
    }

    #[test]
    fn search_stops_once_the_bounds_separate() {
        let space = space(3, 10);
        let config = EpsilonLucbConfig { first: 2, ..Default::default() };
        // Equal scores have no spread: the bounds separate after two datapoints.
        let score = |cell: crate::Cell| Some([0.2, 0.9, 0.5][cell.combo]);
        let (rounds, end, evidence) = run(&space, &mut new_selector(&space, config), score);
        assert_eq!((rounds.len(), evidence.cells(), chosen(&end)), (1, 6, 1));
    }

    #[test]
    fn rounds_have_two_cells_until_the_datapoints_end() {
        let space = space(3, 10);
        let config = EpsilonLucbConfig { epsilon: 0.0, ..Default::default() };
        let score =
            |cell: crate::Cell| Some(f64::from((cell.datapoint + cell.combo).is_multiple_of(2)));
        let (rounds, _, evidence) = run(&space, &mut new_selector(&space, config), score);
        assert_eq!(rounds[0].cells.len(), 3);
        assert!(rounds[1..].iter().all(|round| round.cells.len() == 2 && round.batch == 1));
        assert!(evidence.cells() <= 3 + 2 * 9);
    }

    #[test]
    fn combination_that_always_errors_is_no_rival() {
        let space = space(3, 50);
        // The others separate within a few datapoints, which must not go to the one that errors.
        let score = |cell: crate::Cell| match cell.combo {
            0 => None,
            1 => Some(0.9 + 0.05 * (cell.datapoint % 2) as f64),
            _ => Some(0.6 + 0.05 * (cell.datapoint % 2) as f64),
        };
        let config = EpsilonLucbConfig { first: 2, ..Default::default() };
        let (_, end, evidence) = run(&space, &mut new_selector(&space, config), score);
        assert_eq!(chosen(&end), 1);
        assert!(evidence.cells() <= 12, "{}", evidence.cells());
    }

    #[test]
    fn errors_alone_have_no_winner() {
        let space = space(3, 10);
        let (_, end, _) =
            run(&space, &mut new_selector(&space, EpsilonLucbConfig::default()), |_| None);
        assert!(matches!(end, SelectorStep::NoWinner(_)));
    }
}
