//! Growing rounds, after each of which clearly worse combinations are eliminated.

use super::error::{OptionsError, at_least};
use super::plan::Plan;
use crate::evidence::Evidence;
use crate::selector::{Elimination, Selector, SelectorStep};
use crate::space::Space;
use crate::winner;

/// Options of [`ArmElimination`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ArmEliminationConfig {
    /// Datapoints of the first round; defaults to a tenth of all.
    pub first: Option<usize>,
    /// Growth factor of the rounds.
    pub growth: f64,
    /// Half width of the bounds in standard errors.
    pub width: f64,
}

impl Default for ArmEliminationConfig {
    fn default() -> ArmEliminationConfig {
        ArmEliminationConfig { first: None, growth: 2.0, width: 1.0 }
    }
}

/// Datapoints of the first round: as configured, or a tenth of all.
pub(crate) fn first_round(first: Option<usize>, datapoints: usize) -> usize {
    first.unwrap_or(datapoints / 10).clamp(1, datapoints.max(1))
}

/// Eliminates a combination once its upper bound is below the lower bound of another.
#[derive(Debug, Clone)]
pub struct ArmElimination {
    plan: Plan,
    growth: f64,
    width: f64,
    active: Vec<usize>,
    /// Datapoints requested for all active combinations.
    requested: usize,
    batch: usize,
    eliminations: Vec<Elimination>,
}

impl ArmElimination {
    /// Creates the selector with all combinations active.
    ///
    /// # Errors
    ///
    /// A growth factor below 1, a negative width, or an empty first round.
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
            requested: 0,
            batch: first_round(config.first, space.datapoints()),
            eliminations: Vec::new(),
            plan: Plan::new(space, seed),
        })
    }

    /// Eliminates all combinations whose upper bound is below the highest lower bound.
    ///
    /// Combinations without observations stay and eliminate none. The combination with the highest
    /// lower bound stays, so at least one observed combination always remains.
    fn eliminate(&mut self, evidence: &Evidence) {
        let rival = |combo: &usize| {
            (evidence.stats(*combo).n > 0)
                .then(|| (*combo, winner::defeating_bound(evidence, *combo, self.width)))
        };
        let strongest = self.active.iter().filter_map(rival).reduce(|leader, other| {
            if other.1.total_cmp(&leader.1).is_gt() { other } else { leader }
        });
        let Some((by, bound)) = strongest else { return };
        let (width, eliminations) = (self.width, &mut self.eliminations);
        self.active.retain(|combo| {
            let stats = evidence.stats(*combo);
            let upper = stats.mean + width * stats.standard_error();
            let stays = stats.n == 0 || upper >= bound;
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

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        while self.requested < self.plan.order.len() {
            if self.requested > 0 {
                self.eliminate(evidence);
                if self.active.len() <= 1 {
                    break;
                }
                self.batch = ((self.batch as f64 * self.growth) as usize).max(1);
            }
            let end = (self.requested + self.batch).min(self.plan.order.len());
            let round = self.plan.round(evidence, self.active.iter().copied(), self.requested..end);
            self.requested = end;
            if !round.cells.is_empty() {
                return SelectorStep::Evaluate(round);
            }
        }
        self.eliminate(evidence);
        let reason = match self.active.len() {
            1 => "all others were eliminated".to_owned(),
            count => format!("{count} combinations remained after all datapoints"),
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

    fn new_selector(space: &Space, first: Option<usize>) -> ArmElimination {
        let config = ArmEliminationConfig { first, ..ArmEliminationConfig::default() };
        ArmElimination::new(space, &config, 3).unwrap()
    }

    /// The position of each datapoint in the selector's order.
    fn positions(selector: &ArmElimination) -> Vec<usize> {
        let mut positions = vec![0; selector.plan.order.len()];
        for (position, datapoint) in selector.plan.order.iter().enumerate() {
            positions[*datapoint] = position;
        }
        positions
    }

    #[test]
    fn rounds_double_and_the_last_takes_the_rest() {
        let space = space(2, 200);
        // Two equal combinations.
        let (rounds, _, _) = run(&space, &mut new_selector(&space, None), |cell| {
            Some(f64::from(cell.datapoint.is_multiple_of(2)))
        });
        let batches: Vec<usize> = rounds.iter().map(|round| round.batch).collect();
        assert_eq!(batches, [20, 40, 80, 60]);
    }

    #[test]
    fn clearly_worse_combination_is_eliminated_with_its_cause() {
        let space = space(3, 10);
        let mut selector = new_selector(&space, Some(2));
        let positions = positions(&selector);
        // After two: means 1, 0.5, 0 with deviations 0, √½, 0, so standard errors 0, ½, 0. The second
        // has 0.5 + 0.5 ≥ 1 and stays; the third is eliminated. After six datapoints the second has mean
        // 0.5, deviation √(1.5/5) = 0.5477 and standard error 0.2236: 0.7236 < 1 is eliminated.
        let (rounds, end, _) = run(&space, &mut selector, |cell| {
            Some(match cell.combo {
                0 => 1.0,
                1 => f64::from(positions[cell.datapoint].is_multiple_of(2)),
                _ => 0.0,
            })
        });
        assert_eq!(rounds.iter().map(|round| round.cells.len()).collect::<Vec<_>>(), [6, 8]);
        let gone = |combo, after_cells| Elimination { combo, after_cells, by: Some(0) };
        assert_eq!(selector.eliminations(), [gone(2, 6), gone(1, 14)]);
        assert_eq!(chosen(&end), 0);
    }

    #[test]
    fn lucky_success_eliminates_none() {
        let space = space(2, 20);
        let mut selector = new_selector(&space, Some(5));
        let positions = positions(&selector);
        // The first errors on all but two datapoints, which it passes: 1 ± 0.
        let (_, end, _) = run(&space, &mut selector, |cell| match cell.combo {
            0 => (positions[cell.datapoint] < 2).then_some(1.0),
            _ => Some(f64::from(!positions[cell.datapoint].is_multiple_of(5))),
        });
        assert_eq!((chosen(&end), selector.eliminations()), (1, &[][..]));
    }

    #[test]
    fn errors_alone_have_no_winner() {
        let space = space(2, 20);
        let (_, end, evidence) = run(&space, &mut new_selector(&space, None), |_| None);
        assert!(matches!(end, SelectorStep::NoWinner(_)));
        assert_eq!(evidence.cells(), 40);
    }

    #[test]
    fn growth_below_one_is_rejected() {
        let config = ArmEliminationConfig { growth: 0.5, ..Default::default() };
        let error = ArmElimination::new(&space(2, 2), &config, 1).unwrap_err();
        assert_eq!(error.to_string(), "growth is 0.5, must be at least 1");
    }
}
