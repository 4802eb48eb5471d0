//! The cheapest that is as good, but for some points.
//!
//! Another selector finds the best. Then whoever is cheaper is compared with it, datapoint by
//! datapoint, by two bets (see [`crate::Strict`]): that it is worse by more than the points that may
//! be given up, and that it is not. Who wins the second is good enough, and all that cost more are
//! out. What is compared is cheap, but for the best itself.

use crate::bet::Bet;
use crate::evidence::Evidence;
use crate::selector::{Choice, Elimination, Round, Selector, Step};
use crate::space::{Cell, Space};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// Datapoints of a round, as a share of all.
const STEP: f64 = 0.02;

/// Finds the cheapest within some points of the best that another selector finds.
pub struct Frugal {
    best: Box<dyn Selector>,
    within: f64,
    /// The error that its own comparisons may make.
    alpha: f64,
    order: Vec<usize>,
    combos: usize,
    search: Option<Cheaper>,
    eliminations: Vec<Elimination>,
}

/// The comparison with the best.
struct Cheaper {
    best: Choice,
    rivals: Vec<Rival>,
    /// The cheapest that is good enough, by now.
    good: Option<usize>,
    wanted: usize,
    seen: usize,
}

struct Rival {
    combo: usize,
    worse: Bet,
    good: Bet,
}

impl Frugal {
    /// The cheapest within so many points of what `best` finds. Both together are wrong with a chance
    /// of at most `alpha` more than `best` alone.
    pub fn new(
        best: Box<dyn Selector>,
        space: &Space,
        (within, alpha): (f64, f64),
        seed: u64,
    ) -> Frugal {
        let mut order: Vec<usize> = (0..space.datapoints()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let (combos, search, eliminations) = (space.combos(), None, Vec::new());
        Frugal { best, within, alpha, order, combos, search, eliminations }
    }

    fn begin(&self, best: Choice, evidence: &Evidence) -> Cheaper {
        let price = |combo: usize| evidence.mean_cost(combo).unwrap_or(f64::INFINITY);
        let most = price(best.combo);
        let mut cheaper: Vec<usize> =
            (0..self.combos).filter(|&combo| price(combo) < most).collect();
        cheaper.sort_by(|&one, &other| price(one).total_cmp(&price(other)));
        // Each is asked about twice.
        let needed = ((2 * cheaper.len().max(1)) as f64 / self.alpha.max(1e-12)).ln();
        let bet = Bet::new(self.order.len(), needed);
        let rivals = cheaper.into_iter().map(|combo| Rival { combo, worse: bet, good: bet });
        Cheaper { best, rivals: rivals.collect(), good: None, wanted: 0, seen: 0 }
    }

    fn update(&self, search: &mut Cheaper, evidence: &Evidence) {
        let scale = 2.0 + 2.0 * self.within;
        while search.seen < search.wanted && !search.rivals.is_empty() {
            let datapoint = self.order[search.seen];
            search.seen += 1;
            let best = evidence.value(Cell { combo: search.best.combo, datapoint });
            for rival in &mut search.rivals {
                let value = evidence.value(Cell { combo: rival.combo, datapoint });
                // What is missing speaks against the bet. The mean of both is a half where the
                // difference is just what may be given up.
                let difference = value.unwrap_or(1.0) - best.unwrap_or(0.0);
                let worse = (difference + 1.0 + 2.0 * self.within) / scale;
                rival.worse.see(worse.clamp(0.0, 1.0));
                let difference = value.unwrap_or(0.0) - best.unwrap_or(1.0);
                rival.good.see(((1.0 - difference) / scale).clamp(0.0, 1.0));
            }
            search.settle();
        }
        if search.seen == self.order.len() {
            // Everything is known: who is left lies on the line, to the last digit, or has errors.
            let mean = |combo| evidence.figures_with_errors(combo).mean;
            let least = mean(search.best.combo) - self.within - 1e-9;
            let good = search.rivals.iter().find(|rival| mean(rival.combo) >= least);
            search.good = good.map(|rival| rival.combo).or(search.good);
            search.rivals.clear();
        }
    }
}

impl Cheaper {
    /// The rivals stand by their price: behind one that is good enough nobody matters.
    fn settle(&mut self) {
        if let Some(place) = self.rivals.iter().position(|rival| rival.good.is_won()) {
            self.good = Some(self.rivals[place].combo);
            self.rivals.truncate(place);
        }
        self.rivals.retain(|rival| !rival.worse.is_won());
    }

    fn choice(&self, (within, alpha): (f64, f64)) -> Choice {
        let confidence = self.best.confidence.map(|confidence| (confidence - alpha).max(0.0));
        let reason = match self.good {
            Some(_) => format!("the cheapest within {within} of the best ({})", self.best.reason),
            None => format!("no cheaper one is within {within} of the best ({})", self.best.reason),
        };
        Choice { combo: self.good.unwrap_or(self.best.combo), confidence, reason }
    }
}

impl Selector for Frugal {
    fn name(&self) -> &'static str {
        self.best.name()
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        let mut search = match self.search.take() {
            Some(search) => search,
            None => {
                let step = self.best.next(evidence);
                self.eliminations = self.best.eliminations().to_vec();
                match step {
                    Step::Choose(choice) => self.begin(choice, evidence),
                    other => return other,
                }
            }
        };
        loop {
            self.update(&mut search, evidence);
            // Whom the other gave up may be the cheapest that is good enough.
            self.eliminations.retain(|gone| Some(gone.combo) != search.good);
            if search.rivals.is_empty() {
                let choice = search.choice((self.within, self.alpha));
                self.search = Some(search);
                return Step::Choose(choice);
            }
            let step = ((STEP * self.order.len() as f64).ceil() as usize).max(1);
            let to = (search.wanted + step).min(self.order.len());
            let datapoints = &self.order[search.wanted..to];
            let arms = search.rivals.iter().map(|rival| rival.combo).chain([search.best.combo]);
            let cells = arms.flat_map(|combo| {
                datapoints.iter().map(move |&datapoint| Cell { combo, datapoint })
            });
            let cells: Vec<Cell> = cells.filter(|cell| !evidence.is_visited(*cell)).collect();
            let batch = to - search.wanted;
            search.wanted = to;
            if !cells.is_empty() {
                self.search = Some(search);
                return Step::Evaluate(Round { cells, batch });
            }
        }
    }

    fn so_far(&self, evidence: &Evidence) -> Option<Choice> {
        match &self.search {
            Some(search) => Some(search.choice((self.within, self.alpha))),
            None => self.best.so_far(evidence),
        }
    }

    fn eliminations(&self) -> &[Elimination] {
        &self.eliminations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::space;
    use crate::{BruteForce, Budget, Objective, Observation, SelectorOptions, named, replay};

    /// Means of the rows, each with its price; right answers are spread over the datapoints.
    fn search(rows: &[(f64, f64)], best: Box<dyn Selector>, within: f64) -> crate::Selection {
        let space = space(rows.len(), 100);
        let mut selector = Frugal::new(best, &space, (within, 0.025), 1);
        let observe = |cell: Cell| Observation {
            score: Some(f64::from((cell.datapoint * 37 % 100) as f64 + 0.5 < rows[cell.combo].0)),
            cost: rows[cell.combo].1,
            paid: rows[cell.combo].1,
            latency: 1.0,
        };
        replay(&space, &mut selector, observe, Objective::default(), Budget::default()).unwrap()
    }

    #[test]
    fn the_cheapest_that_is_good_enough() {
        // 90, 87 and 85 of 100 right; five points may be given up, not six.
        let rows = [(90.0, 9.0), (87.0, 3.0), (85.0, 2.0), (84.0, 1.0)];
        let brute = || Box::new(BruteForce::new(&space(4, 100), 1));
        assert_eq!(search(&rows, brute(), 0.05).winner, 2);
        assert_eq!(search(&rows, brute(), 0.06).winner, 3);
        assert_eq!(search(&rows, brute(), 0.01).winner, 0);
    }

    #[test]
    fn who_is_clearly_worse_is_not_paid_for_to_the_end() {
        let rows = [(90.0, 9.0), (88.0, 3.0), (10.0, 1.0)];
        let space = space(3, 100);
        let seed = SelectorOptions { seed: 1, ..SelectorOptions::default() };
        let best = named("arm_elimination", &space, &seed).unwrap();
        let found = search(&rows, best, 0.05);
        assert_eq!(found.winner, 1);
        let worse = found.ranking.iter().find(|ranked| ranked.combo == 2).unwrap();
        assert!(worse.n < 50, "{}", worse.n);
        assert!(worse.eliminated && !found.ranking[0].eliminated);
    }

    #[test]
    fn whom_the_other_gave_up_can_be_chosen_when_the_budget_ends() {
        // The second is given up for the first, and is good enough all the same.
        let rows = [(95.0, 9.0), (70.0, 1.0), (90.0, 5.0)];
        let space = space(3, 100);
        for cells in 30..300 {
            let seed = SelectorOptions { seed: 1, ..SelectorOptions::default() };
            let best = named("arm_elimination", &space, &seed).unwrap();
            let mut selector = Frugal::new(best, &space, (0.5, 0.025), 1);
            let observe = |cell: Cell| Observation {
                score: Some(f64::from(
                    (cell.datapoint * 37 % 100) as f64 + 0.5 < rows[cell.combo].0,
                )),
                cost: rows[cell.combo].1,
                paid: rows[cell.combo].1,
                latency: 1.0,
            };
            let budget = Budget { cells: Some(cells), ..Budget::default() };
            let found = replay(&space, &mut selector, observe, Objective::default(), budget);
            assert!(found.is_ok(), "{cells}: {found:?}");
        }
    }
}
