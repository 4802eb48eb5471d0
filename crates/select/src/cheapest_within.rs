//! The cheapest combination within some points of the best.
//!
//! Another selector finds the best. Every cheaper combination is then compared with it, datapoint by
//! datapoint, by two bets (see [`crate::Strict`]): that it is worse by more than the tolerance, and
//! that it is not. A combination that wins the second bet is good enough, and all more expensive ones
//! are out. Only cheaper combinations and the best itself are evaluated further.

use crate::bet::Bet;
use crate::evidence::Evidence;
use crate::selector::{Elimination, EvaluationRound, Selector, SelectorChoice, SelectorStep};
use crate::space::{Cell, Space};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Datapoints of a round, as a share of all.
const STEP: f64 = 0.02;

/// Finds the cheapest combination within some points of the best that another selector finds.
pub struct CheapestWithin {
    best: Box<dyn Selector>,
    within: f64,
    /// Error probability of the comparisons by cost.
    alpha: f64,
    order: Vec<usize>,
    combos: usize,
    comparison: Option<CostComparison>,
    eliminations: Vec<Elimination>,
}

/// Comparison of the cheaper combinations with the best.
struct CostComparison {
    best: SelectorChoice,
    is_cost_known: bool,
    /// Candidates that are neither good enough nor rejected yet, the cheapest first.
    rivals: Vec<CheaperRival>,
    /// The cheapest combination known to be good enough.
    good: Option<usize>,
    requested: usize,
    observed: usize,
}

struct CheaperRival {
    combo: usize,
    worse: Bet,
    good: Bet,
}

impl CheapestWithin {
    /// Creates a selector for the cheapest combination within `within` points of the choice of `best`.
    ///
    /// Its error probability exceeds that of `best` by at most `alpha`.
    pub fn new(
        best: Box<dyn Selector>,
        space: &Space,
        (within, alpha): (f64, f64),
        seed: u64,
    ) -> CheapestWithin {
        let mut order: Vec<usize> = (0..space.datapoints()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let (combos, comparison, eliminations) = (space.combos(), None, Vec::new());
        CheapestWithin { best, within, alpha, order, combos, comparison, eliminations }
    }

    fn start_comparison(&self, best: SelectorChoice, evidence: &Evidence) -> CostComparison {
        let limit = evidence.mean_cost(best.combo);
        let cost = |combo: usize| Some((evidence.mean_cost(combo)?, combo));
        let mut cheaper: Vec<_> = (0..self.combos)
            .filter_map(cost)
            .filter(|(cost, _)| limit.is_some_and(|limit| *cost < limit))
            .collect();
        cheaper.sort_by_key(|(cost, _)| *cost);
        // Two bets on each rival share the error probability.
        let log_target = ((2 * cheaper.len().max(1)) as f64 / self.alpha.max(1e-12)).ln();
        let bet = Bet::new(self.order.len(), log_target);
        let rival = |(_, combo)| CheaperRival { combo, worse: bet, good: bet };
        let rivals = cheaper.into_iter().map(rival).collect();
        let is_cost_known = limit.is_some();
        CostComparison { best, is_cost_known, rivals, good: None, requested: 0, observed: 0 }
    }

    fn update(&self, comparison: &mut CostComparison, evidence: &Evidence) {
        let scale = 2.0 + 2.0 * self.within;
        while comparison.observed < comparison.requested && !comparison.rivals.is_empty() {
            let datapoint = self.order[comparison.observed];
            comparison.observed += 1;
            let best = evidence.value(Cell { combo: comparison.best.combo, datapoint });
            for rival in &mut comparison.rivals {
                let value = evidence.value(Cell { combo: rival.combo, datapoint });
                // A missing value counts against the bet. Both means are one half where the difference
                // equals the tolerance.
                let difference = value.unwrap_or(1.0) - best.unwrap_or(0.0);
                let worse = (difference + 1.0 + 2.0 * self.within) / scale;
                rival.worse.observe(worse.clamp(0.0, 1.0));
                let difference = value.unwrap_or(0.0) - best.unwrap_or(1.0);
                rival.good.observe(((1.0 - difference) / scale).clamp(0.0, 1.0));
            }
            comparison.settle();
        }
        if comparison.observed == self.order.len() {
            // All datapoints are known: a rival is left only if it equals the tolerance or has errors.
            let mean = |combo| evidence.stats_with_errors_as_zero(combo).mean;
            let min = mean(comparison.best.combo) - self.within - 1e-9;
            let good = comparison.rivals.iter().find(|rival| mean(rival.combo) >= min);
            comparison.good = good.map(|rival| rival.combo).or(comparison.good);
            comparison.rivals.clear();
        }
    }
}

impl CostComparison {
    /// Applies won bets. Rivals are sorted by cost, so those after one that is good enough are dropped.
    fn settle(&mut self) {
        if let Some(position) = self.rivals.iter().position(|rival| rival.good.is_won()) {
            self.good = Some(self.rivals[position].combo);
            self.rivals.truncate(position);
        }
        self.rivals.retain(|rival| !rival.worse.is_won());
    }

    fn choice(&self, (within, alpha): (f64, f64)) -> SelectorChoice {
        let confidence = self.best.confidence.map(|confidence| (confidence - alpha).max(0.0));
        let reason = match self.good {
            Some(_) => format!("the cheapest within {within} of the best ({})", self.best.reason),
            None if !self.is_cost_known => {
                format!("the cost of the best is unknown ({})", self.best.reason)
            }
            None => format!("no cheaper one is within {within} of the best ({})", self.best.reason),
        };
        SelectorChoice { combo: self.good.unwrap_or(self.best.combo), confidence, reason }
    }
}

impl Selector for CheapestWithin {
    fn name(&self) -> &'static str {
        self.best.name()
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        let mut comparison = match self.comparison.take() {
            Some(comparison) => comparison,
            None => {
                let step = self.best.next(evidence);
                self.eliminations = self.best.eliminations().to_vec();
                match step {
                    SelectorStep::Choose(choice) => self.start_comparison(choice, evidence),
                    other => return other,
                }
            }
        };
        loop {
            self.update(&mut comparison, evidence);
            // A combination that the other selector eliminated may be the cheapest good one.
            self.eliminations.retain(|elimination| Some(elimination.combo) != comparison.good);
            if comparison.rivals.is_empty() {
                let choice = comparison.choice((self.within, self.alpha));
                self.comparison = Some(comparison);
                return SelectorStep::Choose(choice);
            }
            let step = ((STEP * self.order.len() as f64).ceil() as usize).max(1);
            let to = (comparison.requested + step).min(self.order.len());
            let datapoints = &self.order[comparison.requested..to];
            let rivals = comparison.rivals.iter().map(|rival| rival.combo);
            let cells = rivals.chain([comparison.best.combo]).flat_map(|combo| {
                datapoints.iter().map(move |&datapoint| Cell { combo, datapoint })
            });
            let cells: Vec<Cell> = cells.filter(|cell| !evidence.is_visited(*cell)).collect();
            let batch = to - comparison.requested;
            comparison.requested = to;
            if !cells.is_empty() {
                self.comparison = Some(comparison);
                return SelectorStep::Evaluate(EvaluationRound { cells, batch });
            }
        }
    }

    fn claim(&self) -> Option<String> {
        self.best.claim()?;
        Some(format!("it is the cheapest within {} of the best on these cases", self.within))
    }

    fn eliminations(&self) -> &[Elimination] {
        &self.eliminations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dollars, space};
    use crate::{
        BruteForce, Objective, Observation, SearchBudget, SearchOutcome, SelectorOptions,
        build_selector, replay,
    };

    /// A cell of a row with this mean, in percent, and cost; passes are spread over the datapoints.
    fn observe(rows: &[(f64, f64)], cell: Cell) -> Observation {
        let (percent, cost) = rows[cell.combo];
        Observation {
            score: Some(f64::from((cell.datapoint * 37 % 100) as f64 + 0.5 < percent)),
            cost: Some(dollars(cost)),
            paid: dollars(cost),
            latency: 1.0,
        }
    }

    fn search(rows: &[(f64, f64)], best: Box<dyn Selector>, within: f64) -> SearchOutcome {
        let space = space(rows.len(), 100);
        let mut selector = CheapestWithin::new(best, &space, (within, 0.025), 1);
        let (objective, budget) = (Objective::default(), SearchBudget::default());
        replay(&space, &mut selector, |cell| observe(rows, cell), objective, budget).unwrap()
    }

    fn arm_elimination(space: &Space) -> Box<dyn Selector> {
        let options = SelectorOptions { seed: 1, ..SelectorOptions::default() };
        build_selector("arm_elimination", space, &options).unwrap()
    }

    #[test]
    fn winner_is_the_cheapest_within_the_tolerance() {
        // 90, 87 and 85 of 100 pass; a loss of five points is allowed, one of six is not.
        let rows = [(90.0, 9.0), (87.0, 3.0), (85.0, 2.0), (84.0, 1.0)];
        let brute = || Box::new(BruteForce::new(&space(4, 100), 1));
        assert_eq!(search(&rows, brute(), 0.05).winner, 2);
        assert_eq!(search(&rows, brute(), 0.06).winner, 3);
        assert_eq!(search(&rows, brute(), 0.01).winner, 0);
    }

    #[test]
    fn clearly_worse_combination_is_not_evaluated_to_the_end() {
        let rows = [(90.0, 9.0), (88.0, 3.0), (10.0, 1.0)];
        let outcome = search(&rows, arm_elimination(&space(3, 100)), 0.05);
        assert_eq!(outcome.winner, 1);
        let worse = outcome.ranking.iter().find(|ranked| ranked.combo == 2).unwrap();
        assert!(worse.n < 50, "{}", worse.n);
        assert!(worse.eliminated && !outcome.ranking[0].eliminated);
    }

    #[test]
    fn eliminated_combination_can_win_when_the_budget_ends_the_search() {
        // The second is eliminated by the first, and is good enough for the tolerance.
        let rows = [(95.0, 9.0), (70.0, 1.0), (90.0, 5.0)];
        let space = space(3, 100);
        for cells in 30..300 {
            let best = arm_elimination(&space);
            let mut selector = CheapestWithin::new(best, &space, (0.5, 0.025), 1);
            let budget = SearchBudget { cells: Some(cells), ..SearchBudget::default() };
            let observe = |cell: Cell| observe(&rows, cell);
            let outcome = replay(&space, &mut selector, observe, Objective::default(), budget);
            assert!(outcome.is_ok(), "{cells}: {outcome:?}");
        }
    }
}
