//! Rounds that grow, after each of which whoever is clearly behind is given up.

use super::error::{OptionsError, at_least};
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Elimination, Selector, Step};
use crate::space::Space;
use crate::winner;

/// How rounds grow, and how clear is clear.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmEliminationConfig {
    /// Datapoints of the first round; a tenth of all when not given.
    pub first: Option<usize>,
    /// What each round is larger by.
    pub growth: f64,
    /// Standard errors that bounds lie from the mean.
    pub width: f64,
}

impl Default for ArmEliminationConfig {
    fn default() -> ArmEliminationConfig {
        ArmEliminationConfig { first: None, growth: 2.0, width: 1.0 }
    }
}

/// Datapoints of a first round: as asked, or a tenth of all.
pub(crate) fn first_round(first: Option<usize>, datapoints: usize) -> usize {
    first.unwrap_or(datapoints / 10).clamp(1, datapoints.max(1))
}

/// Gives a combination up when its upper bound is below another's lower bound.
#[derive(Debug, Clone)]
pub struct ArmElimination {
    plan: Plan,
    growth: f64,
    width: f64,
    active: Vec<usize>,
    /// Datapoints that all active ones have been asked for.
    done: usize,
    batch: usize,
    eliminations: Vec<Elimination>,
}

impl ArmElimination {
    /// Starts with everybody.
    ///
    /// # Errors
    ///
    /// Rounds that shrink, or bounds on the wrong side of the mean.
    pub fn new(
        space: &Space,
        config: &ArmEliminationConfig,
        seed: u64,
    ) -> Result<ArmElimination, OptionsError> {
        at_least("growth", config.growth, 1.0)?;
        at_least("width", config.width, 0.0)?;
        if config.first == Some(0) {
            at_least("first", 0.0, 1.0)?;
        }
        Ok(ArmElimination {
            growth: config.growth,
            width: config.width,
            active: (0..space.combos()).collect(),
            done: 0,
            batch: first_round(config.first, space.datapoints()),
            eliminations: Vec::new(),
            plan: Plan::new(space, seed),
        })
    }

    /// Whoever is behind goes at the same time, also if whoever it is behind goes as well. Whoever
    /// nothing is known of stays, and gives nobody up. The one with the highest lower bound is behind
    /// nobody, so that somebody who was observed is always left.
    fn eliminate(&mut self, evidence: &Evidence) {
        let rival = |combo: &usize| {
            (evidence.figures(*combo).n > 0)
                .then(|| (*combo, winner::defeating_bound(evidence, *combo, self.width)))
        };
        let strongest = self.active.iter().filter_map(rival).reduce(|leader, other| {
            if other.1.total_cmp(&leader.1).is_gt() { other } else { leader }
        });
        let Some((by, bound)) = strongest else { return };
        let (width, eliminations) = (self.width, &mut self.eliminations);
        self.active.retain(|combo| {
            let figures = evidence.figures(*combo);
            let upper = figures.mean + width * figures.standard_error();
            let stays = figures.n == 0 || upper >= bound;
            if !stays {
                let after_cells = evidence.cells();
                eliminations.push(Elimination { combo: *combo, after_cells, by: Some(by) });
            }
            stays
        });
    }
}

impl Selector for ArmElimination {
    fn name(&self) -> &'static str {
        "arm_elimination"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        while self.done < self.plan.order.len() {
            if self.done > 0 {
                self.eliminate(evidence);
                if self.active.len() <= 1 {
                    break;
                }
                self.batch = ((self.batch as f64 * self.growth) as usize).max(1);
            }
            let end = (self.done + self.batch).min(self.plan.order.len());
            let round = self.plan.round(evidence, self.active.iter().copied(), self.done..end);
            self.done = end;
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
        }
        self.eliminate(evidence);
        let reason = match self.active.len() {
            1 => "all others were given up".to_owned(),
            left => format!("{left} combinations were left when the datapoints ended"),
        };
        Plan::choose(evidence, self.active.iter().copied(), reason)
    }

    fn eliminations(&self) -> &[Elimination] {
        &self.eliminations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chosen, run, space};

    fn made(space: &Space, first: Option<usize>) -> ArmElimination {
        let config = ArmEliminationConfig { first, ..ArmEliminationConfig::default() };
        ArmElimination::new(space, &config, 3).unwrap()
    }

    /// The place of a cell in the selector's order.
    fn place(selector: &ArmElimination) -> Vec<usize> {
        let mut places = vec![0; selector.plan.order.len()];
        for (place, datapoint) in selector.plan.order.iter().enumerate() {
            places[*datapoint] = place;
        }
        places
    }

    #[test]
    fn rounds_double_and_the_last_takes_the_rest() {
        let space = space(2, 200);
        // Two that cannot be told apart.
        let (rounds, _, _) = run(&space, &mut made(&space, None), |cell| {
            Some(f64::from(cell.datapoint.is_multiple_of(2)))
        });
        let batches: Vec<usize> = rounds.iter().map(|round| round.batch).collect();
        assert_eq!(batches, [20, 40, 80, 60]);
    }

    #[test]
    fn who_is_clearly_behind_goes_and_by_whom_is_told() {
        let space = space(3, 10);
        let mut selector = made(&space, Some(2));
        let place = place(&selector);
        // After two: means 1, 0.5, 0 with deviations 0, √½, 0, so standard errors 0, ½, 0. The second
        // has 0.5 + 0.5 ≥ 1 and stays; the third goes. After six (0.5 everywhere of the second): mean 0.5,
        // deviation √(1.5/5) = 0.5477, standard error 0.2236: 0.7236 < 1 goes.
        let (rounds, end, _) = run(&space, &mut selector, |cell| {
            Some(match cell.combo {
                0 => 1.0,
                1 => f64::from(place[cell.datapoint].is_multiple_of(2)),
                _ => 0.0,
            })
        });
        assert_eq!(rounds.iter().map(|round| round.cells.len()).collect::<Vec<_>>(), [6, 8]);
        let gone = |combo, after_cells| Elimination { combo, after_cells, by: Some(0) };
        assert_eq!(selector.eliminations(), [gone(2, 6), gone(1, 14)]);
        assert_eq!(chosen(&end), 0);
    }

    #[test]
    fn a_lucky_success_gives_nobody_up() {
        let space = space(2, 20);
        let mut selector = made(&space, Some(5));
        let place = place(&selector);
        // The first errs on everything but two datapoints, which it gets right: 1 ± 0.
        let (_, end, _) = run(&space, &mut selector, |cell| match cell.combo {
            0 => (place[cell.datapoint] < 2).then_some(1.0),
            _ => Some(f64::from(!place[cell.datapoint].is_multiple_of(5))),
        });
        assert_eq!((chosen(&end), selector.eliminations()), (1, &[][..]));
    }

    #[test]
    fn errors_alone_end_with_the_datapoints() {
        let space = space(2, 20);
        let (_, end, evidence) = run(&space, &mut made(&space, None), |_| None);
        assert!(matches!(end, Step::GiveUp(_)));
        assert_eq!(evidence.cells(), 40);
    }

    #[test]
    fn options_have_limits() {
        let config = ArmEliminationConfig { growth: 0.5, ..Default::default() };
        let error = ArmElimination::new(&space(2, 2), &config, 1).unwrap_err();
        assert_eq!(error.to_string(), "growth is 0.5, and must be at least 1");
    }
}
