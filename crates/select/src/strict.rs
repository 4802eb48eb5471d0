//! `strict`: eliminations backed by a theorem instead of a model.
//!
//! All remaining combinations see the same datapoints, in one shuffled order. Each ordered pair has a
//! bet against the hypothesis "the first is not worse than the second". The datapoints are drawn
//! without replacement, so under the hypothesis the mean of the remaining differences has a known lower
//! bound, and the wealth of the bet is a nonnegative supermartingale. By Ville's inequality it ever
//! reaches `(K − 1) / α` with probability at most `α / (K − 1)`. The best combination has K − 1 rivals,
//! so it is eliminated with probability at most α, at any stopping time.
//! (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting".)
//!
//! The score of an errored cell is unknown. In each pair it takes the value most favourable to the
//! combination that would be eliminated, so the guarantee holds for every possible score.

use crate::bet::Bet;
use crate::evidence::Evidence;
use crate::selector::{Elimination, EvaluationRound, Selector, SelectorChoice, SelectorStep};
use crate::selectors::NO_SCORES;
use crate::space::{Cell, Space};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Minimum number of cells of a round, while there are as many: the default concurrency limit. It is not the limit of the
/// search, because rounds must not depend on that.
const MIN_ROUND_CELLS: usize = 20;

/// Options of [`Strict`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct StrictOptions {
    /// Probability with which the best combination is not eliminated.
    pub confidence: f64,
    /// Range of the scores.
    pub range: (f64, f64),
    /// Datapoints of a round, as a share of all: smaller rounds stop earlier, but wait more often.
    pub step: f64,
    /// Seed of the datapoint order.
    pub seed: u64,
}

impl Default for StrictOptions {
    fn default() -> StrictOptions {
        StrictOptions { confidence: 0.95, range: (0.0, 1.0), step: 0.02, seed: 0 }
    }
}

/// Eliminates only combinations that are proved to be worse.
#[derive(Debug)]
pub struct Strict {
    options: StrictOptions,
    order: Vec<usize>,
    arms: usize,
    active: Vec<usize>,
    /// `bets[i·arms + j]` is the bet that combination i is worse than j.
    bets: Vec<Bet>,
    /// Requested datapoints.
    requested: usize,
    /// Datapoints that the bets have observed.
    observed: usize,
    eliminations: Vec<Elimination>,
}

impl Strict {
    /// Creates the selector for a space.
    pub fn new(space: &Space, options: StrictOptions) -> Strict {
        let mut order: Vec<usize> = (0..space.datapoints()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(options.seed));
        let arms = space.combos();
        let alpha = (1.0 - options.confidence).clamp(1e-12, 1.0);
        let log_target = ((arms.max(2) - 1) as f64 / alpha).ln();
        Strict {
            options,
            arms,
            active: (0..arms).collect(),
            bets: vec![Bet::new(space.datapoints(), log_target); arms * arms],
            order,
            requested: 0,
            observed: 0,
            eliminations: Vec::new(),
        }
    }

    /// Scores of the active combinations, scaled to 0..1; `None` for an errored cell.
    fn scores(&self, evidence: &Evidence, datapoint: usize) -> Vec<Option<f64>> {
        let (low, high) = self.options.range;
        let score = |&combo: &usize| {
            let value = evidence.value(Cell { combo, datapoint })?;
            Some(((value - low) / (high - low)).clamp(0.0, 1.0))
        };
        self.active.iter().map(score).collect()
    }

    fn update(&mut self, evidence: &Evidence) {
        if self.active.len() < 2 {
            self.observed = self.requested;
        }
        while self.observed < self.requested && self.active.len() > 1 {
            let scores = self.scores(evidence, self.order[self.observed]);
            self.observed += 1;
            let mut eliminated: Vec<(usize, usize)> = Vec::new();
            for (at, &arm) in self.active.iter().enumerate() {
                for (rival_at, &rival) in self.active.iter().enumerate() {
                    if arm != rival {
                        // A missing score favours the combination that would be eliminated.
                        let mine = scores[at].unwrap_or(1.0);
                        let theirs = scores[rival_at].unwrap_or(0.0);
                        let bet = &mut self.bets[arm * self.arms + rival];
                        bet.observe((mine - theirs + 1.0) / 2.0);
                        let is_known = eliminated.last().is_some_and(|(last, _)| *last == arm);
                        if bet.is_won() && !is_known {
                            eliminated.push((arm, rival));
                        }
                    }
                }
            }
            // Opposite bets are won together only by error; at least one combination stays.
            eliminated.truncate(self.active.len() - 1);
            for (combo, by) in eliminated {
                self.active.retain(|&arm| arm != combo);
                let after_cells = evidence.cells();
                self.eliminations.push(Elimination { combo, after_cells, by: Some(by) });
            }
        }
    }

    fn choose(&self, evidence: &Evidence) -> SelectorChoice {
        // Errors count as the lowest score, as in the bets: few scores do not win.
        let mean = |combo: usize| {
            let observed = &self.order[..self.observed];
            let value = |&datapoint: &usize| {
                evidence.value(Cell { combo, datapoint }).unwrap_or(self.options.range.0)
            };
            observed.iter().map(value).sum::<f64>()
        };
        let means: Vec<(usize, f64)> = self.active.iter().map(|&arm| (arm, mean(arm))).collect();
        let best =
            means.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best });
        let combo = best.map_or(0, |(arm, _)| arm);
        let reason = match self.active.len() {
            1 if self.arms == 1 => "there is no other combination".to_owned(),
            1 => "all others are proved to be worse".to_owned(),
            count => format!("all datapoints were evaluated; {count} combinations remain"),
        };
        SelectorChoice { combo, confidence: Some(self.options.confidence), reason }
    }
}

impl Selector for Strict {
    fn name(&self) -> &'static str {
        "strict"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        loop {
            self.update(evidence);
            let is_decided = self.active.len() < 2 && self.requested > 0;
            if is_decided || self.requested == self.order.len() {
                let choice = self.choose(evidence);
                return match evidence.stats(choice.combo).n {
                    0 => SelectorStep::NoWinner(NO_SCORES.to_owned()),
                    _ => SelectorStep::Choose(choice),
                };
            }
            let step = (self.options.step * self.order.len() as f64) as usize;
            let step = step.max(MIN_ROUND_CELLS.div_ceil(self.active.len().max(1)));
            let to = (self.requested + step).min(self.order.len());
            let datapoints = &self.order[self.requested..to];
            let cells = self.active.iter().flat_map(|&combo| {
                datapoints.iter().map(move |&datapoint| Cell { combo, datapoint })
            });
            let cells: Vec<Cell> = cells.filter(|cell| !evidence.is_visited(*cell)).collect();
            let batch = to - self.requested;
            self.requested = to;
            if !cells.is_empty() {
                return SelectorStep::Evaluate(EvaluationRound { cells, batch });
            }
        }
    }

    fn claim(&self) -> Option<String> {
        Some("no combination is better on these cases".to_owned())
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
    fn rounds_use_the_default_concurrency() {
        let space = space(2, 200);
        let score =
            |cell: Cell| Some(f64::from(!cell.datapoint.is_multiple_of(4) || cell.combo == 1));
        let mut selector = Strict::new(&space, StrictOptions::default());
        let (rounds, end, _) = run(&space, &mut selector, score);
        assert_eq!(chosen(&end), 1);
        assert!(
            rounds.len() > 1 && rounds.iter().all(|round| round.cells.len() == 20),
            "{rounds:?}"
        );
    }
}
