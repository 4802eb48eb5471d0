//! Hill climbing: change one role at a time while that helps, then restart elsewhere.

use super::error::{OptionsError, at_least};
use super::hints::Hints;
use super::plan::{Draw, Plan, random};
use crate::evidence::Evidence;
use crate::selector::{Selector, SelectorStep};
use crate::space::{Cell, Space};
use crate::winner;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use std::collections::{BTreeSet, HashMap};

/// Options of [`HillClimbing`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HillClimbingConfig {
    /// Maximum number of rounds per start.
    pub iterations: usize,
    /// Number of starts.
    pub restarts: usize,
    /// Rounds without improvement that end a start.
    pub patience: usize,
    /// Neighbours per round.
    pub batch: usize,
    /// Prior knowledge about the candidates. Neighbours that it suggests come first.
    pub hints: Option<Hints>,
}

impl Default for HillClimbingConfig {
    fn default() -> HillClimbingConfig {
        HillClimbingConfig { iterations: 20, restarts: 3, patience: 3, batch: 1, hints: None }
    }
}

/// Climbs from random combinations to better neighbours, which differ in one role.
#[derive(Debug)]
pub struct HillClimbing {
    plan: Plan,
    config: HillClimbingConfig,
    space: Space,
    numbers: HashMap<Vec<u32>, usize>,
    random: ChaCha8Rng,
    /// Combinations to start from, the next one last.
    starts: Vec<usize>,
    started: usize,
    requested: BTreeSet<usize>,
    climb: Option<Climb>,
}

/// A climb from one start.
#[derive(Debug, Clone)]
struct Climb {
    at: usize,
    neighbours: Vec<usize>,
    iterations: usize,
    /// Rounds without improvement.
    stale: usize,
}

impl HillClimbing {
    /// Creates the selector.
    ///
    /// # Errors
    ///
    /// Hints that do not match the candidates, or an option that is 0.
    pub fn new(
        space: &Space,
        config: HillClimbingConfig,
        seed: u64,
    ) -> Result<HillClimbing, OptionsError> {
        at_least("iterations", config.iterations as f64, 1.0)?;
        at_least("restarts", config.restarts as f64, 1.0)?;
        at_least("patience", config.patience as f64, 1.0)?;
        at_least("batch", config.batch as f64, 1.0)?;
        if let Some(hints) = &config.hints {
            hints.check(space)?;
        }
        let mut random = random(seed, Draw::Combos);
        let mut starts: Vec<usize> = (0..space.combos()).collect();
        starts.shuffle(&mut random);
        Ok(HillClimbing {
            plan: Plan::new(space, seed),
            config,
            numbers: (0..space.combos()).map(|at| (space.members(at).to_vec(), at)).collect(),
            space: space.clone(),
            random,
            starts,
            started: 0,
            requested: BTreeSet::new(),
            climb: None,
        })
    }

    /// Returns the neighbours that were not requested, the most promising first.
    fn neighbours(&mut self, at: usize, perfect: bool) -> Vec<usize> {
        let members = self.space.members(at).to_vec();
        let mut roles: Vec<usize> = (0..members.len()).collect();
        roles.shuffle(&mut self.random);
        let changed = |role: usize, candidate: u32| {
            let mut members = members.clone();
            members[role] = candidate;
            let is_new = |combo: &usize| *combo != at && !self.requested.contains(combo);
            self.numbers.get(&members).copied().filter(is_new)
        };
        let mut found: Vec<usize> = Vec::new();
        if let Some(hints) = &self.config.hints {
            // The nearest neighbour in each role: better quality first while the score can improve, lower cost first
            // once it cannot.
            let nearest = |list: fn(&Hints, usize, u32) -> Vec<u32>| {
                let of = |role: &usize| {
                    let mut list = list(hints, *role, members[*role]).into_iter();
                    list.find_map(|candidate| changed(*role, candidate))
                };
                roles.iter().filter_map(of).collect::<Vec<_>>()
            };
            let (better, cheaper) = (nearest(Hints::better), nearest(Hints::cheaper));
            let (first, then) = if perfect { (cheaper, better) } else { (better, cheaper) };
            for combo in first.into_iter().chain(then) {
                if !found.contains(&combo) {
                    found.push(combo);
                }
            }
        }
        // Hints are incomplete and can be wrong, so every other change of one role follows in random order.
        let mut others: Vec<usize> = Vec::new();
        for role in &roles {
            let candidates = 0..self.space.roles()[*role].candidates.len() as u32;
            others.extend(candidates.filter_map(|candidate| changed(*role, candidate)));
        }
        others.retain(|combo| !found.contains(combo));
        others.shuffle(&mut self.random);
        found.extend(others);
        found
    }

    /// Whether every score is perfect, so that only the cost can improve.
    fn is_perfect(&self, evidence: &Evidence, combo: usize) -> bool {
        let cells = (0..self.space.datapoints()).map(|datapoint| Cell { combo, datapoint });
        let mut scores = cells.filter_map(|cell| evidence.observation(cell)?.score).peekable();
        scores.peek().is_some() && scores.all(|score| score >= 1.0 - winner::TIE)
    }

    /// Returns the neighbours of the next round of a climb; empty at its end.
    fn step(&mut self, evidence: &Evidence, climb: &mut Climb) -> Vec<usize> {
        let evaluated = std::mem::take(&mut climb.neighbours);
        if !evaluated.is_empty() {
            let best = evaluated.into_iter().reduce(|leader, other| {
                if is_better(evidence, other, leader) { other } else { leader }
            });
            match best.filter(|best| is_better(evidence, *best, climb.at)) {
                Some(best) => (climb.at, climb.stale) = (best, 0),
                None => climb.stale += 1,
            }
        }
        if climb.stale >= self.config.patience || climb.iterations >= self.config.iterations {
            return Vec::new();
        }
        climb.iterations += 1;
        let perfect = self.is_perfect(evidence, climb.at);
        let mut neighbours = self.neighbours(climb.at, perfect);
        neighbours.truncate(self.config.batch);
        neighbours
    }
}

fn is_better(evidence: &Evidence, one: usize, two: usize) -> bool {
    let mean = |combo: usize| winner::adjusted_mean(evidence, combo).unwrap_or(f64::NEG_INFINITY);
    let (value, rival) = (mean(one), mean(two));
    value > f64::NEG_INFINITY && winner::compare(evidence, value, one, rival, two).is_gt()
}

impl Selector for HillClimbing {
    fn name(&self) -> &'static str {
        "hill_climbing"
    }

    fn next(&mut self, evidence: &Evidence) -> SelectorStep {
        loop {
            let next = if let Some(mut climb) = self.climb.take() {
                let neighbours = self.step(evidence, &mut climb);
                if neighbours.is_empty() {
                    continue;
                }
                climb.neighbours.clone_from(&neighbours);
                self.climb = Some(climb);
                neighbours
            } else {
                while self.starts.pop_if(|start| self.requested.contains(start)).is_some() {}
                let can_start = self.started < self.config.restarts;
                let Some(at) = self.starts.pop().filter(|_| can_start) else {
                    let reason = format!(
                        "{} of {} combinations were evaluated from {} starts",
                        self.requested.len(),
                        self.plan.combos,
                        self.started
                    );
                    return Plan::choose(evidence, self.requested.iter().copied(), reason);
                };
                self.started += 1;
                self.climb = Some(Climb { at, neighbours: Vec::new(), iterations: 0, stale: 0 });
                vec![at]
            };
            self.requested.extend(&next);
            let round = self.plan.full_round(evidence, next);
            if !round.cells.is_empty() {
                return SelectorStep::Evaluate(round);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hints::Hint;
    use super::*;
    use crate::testing::{chosen, dollars, grid, run};

    /// Three candidates for each of two roles: the last is the best, the first the cheapest.
    fn hints() -> Hints {
        let hint =
            |rank: f64, price: f64| Hint { quality_rank: Some(rank), price: Some(dollars(price)) };
        Hints(vec![vec![hint(3.0, 1.0), hint(2.0, 2.0), hint(1.0, 3.0)]; 2])
    }

    fn new_selector(space: &Space, hints: Option<Hints>) -> HillClimbing {
        let config = HillClimbingConfig { hints, ..Default::default() };
        HillClimbing::new(space, config, 9).unwrap()
    }

    #[test]
    fn neighbours_differ_in_one_role_with_better_ones_first() {
        let space = grid(&[3, 3], 2);
        let mut selector = new_selector(&space, Some(hints()));
        // Combination 4 has the middle candidate twice: 7 and 5 are a rank better, 1 and 3 cheaper.
        let sorted = |part: &[usize]| {
            let mut part = part.to_vec();
            part.sort_unstable();
            part
        };
        let neighbours = selector.neighbours(4, false);
        assert_eq!((sorted(&neighbours[..2]), sorted(&neighbours[2..])), (vec![5, 7], vec![1, 3]));
        let neighbours = selector.neighbours(4, true);
        assert_eq!((sorted(&neighbours[..2]), sorted(&neighbours[2..])), (vec![1, 3], vec![5, 7]));
        // Requested combinations are no neighbours.
        selector.requested.extend([5, 3]);
        assert_eq!(sorted(&selector.neighbours(4, false)), [1, 7]);
        // 0 has the cheapest and worst candidate twice; with 1 requested, the next better one is 2.
        selector.requested.insert(1);
        assert_eq!(sorted(&selector.neighbours(0, false)), [2, 6]);
        // Without hints, any change of one role is a neighbour.
        assert_eq!(sorted(&new_selector(&space, None).neighbours(4, false)), [1, 3, 5, 7]);
    }

    #[test]
    fn climb_reaches_the_top() {
        let space = grid(&[4, 4, 4], 3);
        let score =
            |cell: Cell| Some(f64::from(space.members(cell.combo).iter().sum::<u32>()) / 10.0);
        let hint = |rank: usize| Hint { quality_rank: Some(4.0 - rank as f64), price: None };
        let hints = Hints(vec![(0..4).map(hint).collect(); 3]);
        for seed in 0..10 {
            let hints = Some(hints.clone());
            let config = HillClimbingConfig { restarts: 1, hints, ..Default::default() };
            let mut selector = HillClimbing::new(&space, config, seed).unwrap();
            let (rounds, end, _) = run(&space, &mut selector, score);
            // Each round is one step up, with no detour, until no neighbour of the top is better.
            let first = space.members(rounds[0].cells[0].combo);
            let steps: u32 = first.iter().map(|candidate| 3 - candidate).sum();
            assert_eq!((chosen(&end), rounds.len()), (63, 1 + steps as usize + 3));
            assert_eq!(rounds[steps as usize].cells[0].combo, 63);
            assert!(rounds.iter().all(|round| round.cells.len() == 3 && round.batch == 3));
        }
    }

    #[test]
    fn combination_that_hints_do_not_suggest_is_found() {
        let space = grid(&[4, 4], 3);
        // Prices of half of the candidates are unknown, and the best combination consists of those.
        let prices = vec![vec![Some(dollars(1.0)), Some(dollars(2.0)), None, None]; 2];
        let score = |cell: Cell| {
            let members = space.members(cell.combo).iter();
            Some(members.map(|&member| [0.1, 0.0, 0.2, 0.4][member as usize]).sum())
        };
        for hints in
            [Some(Hints::from_prices(prices)), Some(Hints::from_prices(vec![vec![None; 4]; 2]))]
        {
            for seed in 0..10 {
                let config =
                    HillClimbingConfig { patience: 6, hints: hints.clone(), ..Default::default() };
                let mut selector = HillClimbing::new(&space, config, seed).unwrap();
                assert_eq!(chosen(&run(&space, &mut selector, score).1), 15, "seed {seed}");
            }
        }
    }

    #[test]
    fn patience_ends_a_climb_and_limits_restarts() {
        let space = grid(&[10, 10], 1);
        let config = HillClimbingConfig { restarts: 2, patience: 3, ..Default::default() };
        let mut selector = HillClimbing::new(&space, config, 9).unwrap();
        // All are equal: each start evaluates itself and three neighbours.
        let (_, _, evidence) = run(&space, &mut selector, |_| Some(0.5));
        assert_eq!(evidence.cells(), 2 * (1 + 3));
    }

    #[test]
    fn errors_alone_have_no_winner() {
        let space = grid(&[3, 3], 2);
        let (_, end, _) = run(&space, &mut new_selector(&space, None), |_| None);
        assert!(matches!(end, SelectorStep::NoWinner(_)));
    }

    #[test]
    fn mismatched_hints_are_rejected() {
        let config = HillClimbingConfig { hints: Some(hints()), ..Default::default() };
        let error = HillClimbing::new(&grid(&[3, 2], 1), config, 1).unwrap_err();
        assert_eq!(error, OptionsError::Hints);
    }
}
