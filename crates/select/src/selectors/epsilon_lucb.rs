//! The leader and its strongest rival get the next datapoint, until they cannot change places.

use super::error::{OptionsError, at_least};
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Selector, Step};
use crate::space::Space;
use crate::winner;

/// When the two are near enough.
#[derive(Debug, Clone, PartialEq)]
pub struct EpsilonLucbConfig {
    /// What the rival may be better by at most.
    pub epsilon: f64,
    /// Datapoints that everybody gets first.
    pub first: usize,
    /// Standard errors that bounds lie from the mean.
    pub width: f64,
}

impl Default for EpsilonLucbConfig {
    fn default() -> EpsilonLucbConfig {
        EpsilonLucbConfig { epsilon: 0.01, first: 1, width: 1.0 }
    }
}

/// Evaluates the best mean and the highest upper bound among the others, until the bounds part.
#[derive(Debug, Clone)]
pub struct EpsilonLucb {
    plan: Plan,
    config: EpsilonLucbConfig,
    done: usize,
}

impl EpsilonLucb {
    /// Starts with everybody.
    ///
    /// # Errors
    ///
    /// A negative ε or width, or nothing to start with.
    pub fn new(
        space: &Space,
        config: EpsilonLucbConfig,
        seed: u64,
    ) -> Result<EpsilonLucb, OptionsError> {
        at_least("epsilon", config.epsilon, 0.0)?;
        at_least("width", config.width, 0.0)?;
        at_least("first", config.first as f64, 1.0)?;
        Ok(EpsilonLucb { plan: Plan::new(space, seed), config, done: 0 })
    }

    /// The leader, the rival, and what the rival could be better by.
    fn pair(&self, evidence: &Evidence) -> Option<(usize, usize, f64)> {
        let leader = winner::best(evidence, 0..self.plan.combos)?;
        let upper = |combo: usize| winner::winning_bound(evidence, combo, self.config.width);
        let others = (0..self.plan.combos).filter(|combo| *combo != leader);
        let (rival, bound) = others.map(|combo| (combo, upper(combo))).reduce(|first, other| {
            if other.1.total_cmp(&first.1).is_gt() { other } else { first }
        })?;
        let figures = evidence.figures(leader);
        let lower = figures.mean - self.config.width * figures.standard_error();
        Some((leader, rival, bound - lower))
    }
}

impl Selector for EpsilonLucb {
    fn name(&self) -> &'static str {
        "epsilon_lucb"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        let all = 0..self.plan.combos;
        let datapoints = self.plan.order.len();
        if self.done == 0 {
            self.done = self.config.first.min(datapoints);
            let round = self.plan.round(evidence, all.clone(), 0..self.done);
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
        }
        loop {
            let Some((leader, rival, gap)) = self.pair(evidence) else {
                if self.done >= datapoints || winner::best(evidence, all.clone()).is_some() {
                    return Plan::choose(evidence, all, "there is no rival");
                }
                // Everything errored so far: the next datapoint is for everybody.
                let round = self.plan.round(evidence, all.clone(), self.done..self.done + 1);
                self.done += 1;
                if round.cells.is_empty() {
                    continue;
                }
                return Step::Evaluate(round);
            };
            if gap <= self.config.epsilon {
                let reason = format!("no other can be better by more than {}", self.config.epsilon);
                return Plan::choose(evidence, all, reason);
            }
            if self.done >= datapoints {
                return Plan::choose(evidence, all, "the datapoints ended");
            }
            let round = self.plan.round(evidence, [leader, rival], self.done..self.done + 1);
            self.done += 1;
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, filled, run, space};

    fn made(space: &Space, config: EpsilonLucbConfig) -> EpsilonLucb {
        EpsilonLucb::new(space, config, 5).unwrap()
    }

    #[test]
    fn the_leader_and_the_highest_upper_bound_are_compared() {
        let space = space(3, 10);
        // 0.75 ± 0.25, 0.5 ± 0.289 and 0.6 ± 0: leader 0, upper bounds of the rest 0.788675 and 0.6.
        let rows = [
            [1.0, 1.0, 1.0, 0.0].map(Some).to_vec(),
            [1.0, 1.0, 0.0, 0.0].map(Some).to_vec(),
            [0.6, 0.6, 0.6, 0.6].map(Some).to_vec(),
        ];
        let selector = made(&space, EpsilonLucbConfig::default());
        let (leader, rival, gap) = selector.pair(&filled(&space, &rows)).unwrap();
        assert_eq!((leader, rival), (0, 1));
        // √(1/3)/2 = 0.288675; deviation of the leader 0.5, standard error 0.25.
        assert!((gap - (0.5 + 0.288_675_134_594_812_9 - 0.5)).abs() < 1e-12);
    }

    #[test]
    fn it_stops_when_the_bounds_have_parted() {
        let space = space(3, 10);
        let config = EpsilonLucbConfig { first: 2, ..Default::default() };
        // Equal scores have no spread: after two datapoints all is decided.
        let score = |cell: crate::Cell| Some([0.2, 0.9, 0.5][cell.combo]);
        let (rounds, end, evidence) = run(&space, &mut made(&space, config), score);
        assert_eq!((rounds.len(), evidence.cells(), chosen(&end)), (1, 6, 1));
    }

    #[test]
    fn rounds_are_of_two_cells_and_end_with_the_datapoints() {
        let space = space(3, 10);
        let config = EpsilonLucbConfig { epsilon: 0.0, ..Default::default() };
        let score =
            |cell: crate::Cell| Some(f64::from((cell.datapoint + cell.combo).is_multiple_of(2)));
        let (rounds, _, evidence) = run(&space, &mut made(&space, config), score);
        assert_eq!(rounds[0].cells.len(), 3);
        assert!(rounds[1..].iter().all(|round| round.cells.len() == 2 && round.batch == 1));
        assert!(evidence.cells() <= 3 + 2 * 9);
    }

    #[test]
    fn one_that_always_errs_is_no_rival() {
        let space = space(3, 50);
        // The others are told apart in a few datapoints, which the one that errs must not take.
        let score = |cell: crate::Cell| match cell.combo {
            0 => None,
            1 => Some(0.9 + 0.05 * (cell.datapoint % 2) as f64),
            _ => Some(0.6 + 0.05 * (cell.datapoint % 2) as f64),
        };
        let config = EpsilonLucbConfig { first: 2, ..Default::default() };
        let (_, end, evidence) = run(&space, &mut made(&space, config), score);
        assert_eq!(chosen(&end), 1);
        assert!(evidence.cells() <= 12, "{}", evidence.cells());
    }

    #[test]
    fn errors_alone_end_with_the_datapoints() {
        let space = space(3, 10);
        let (_, end, _) = run(&space, &mut made(&space, EpsilonLucbConfig::default()), |_| None);
        assert!(matches!(end, Step::GiveUp(_)));
    }
}
