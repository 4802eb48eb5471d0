//! One role changes at a time, as long as that helps; then again from somewhere else.

use super::error::{OptionsError, at_least};
use super::hints::Hints;
use super::plan::{Draw, Plan, random};
use crate::evidence::Evidence;
use crate::selector::{Selector, Step};
use crate::space::{Cell, Space};
use crate::winner;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use std::collections::{BTreeSet, HashMap};

/// How long to climb.
#[derive(Debug, Clone, PartialEq)]
pub struct HillClimbingConfig {
    /// Rounds of neighbours for each start.
    pub iterations: usize,
    /// How often to start.
    pub restarts: usize,
    /// Rounds without improvement after which a start is over.
    pub patience: usize,
    /// Neighbours of a round.
    pub batch: usize,
    /// What is known of the candidates. Without it, any change of one role is a neighbour.
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
    /// Where to start next, from the end.
    starts: Vec<usize>,
    started: usize,
    asked: BTreeSet<usize>,
    climb: Option<Climb>,
}

#[derive(Debug, Clone)]
struct Climb {
    at: usize,
    neighbours: Vec<usize>,
    iterations: usize,
    stale: usize,
}

impl HillClimbing {
    /// Starts nowhere yet.
    ///
    /// # Errors
    ///
    /// Hints for other candidates, or a number that must be at least 1 and is 0.
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
            asked: BTreeSet::new(),
            climb: None,
        })
    }

    /// Neighbours that were not tried, those to try first in front.
    fn neighbours(&mut self, at: usize, perfect: bool) -> Vec<usize> {
        let members = self.space.members(at).to_vec();
        let mut roles: Vec<usize> = (0..members.len()).collect();
        roles.shuffle(&mut self.random);
        let changed = |role: usize, candidate: u32| {
            let mut members = members.clone();
            members[role] = candidate;
            let is_new = |combo: &usize| *combo != at && !self.asked.contains(combo);
            self.numbers.get(&members).copied().filter(is_new)
        };
        let mut found: Vec<usize> = Vec::new();
        match &self.config.hints {
            Some(hints) => {
                // The nearest of each role: a step up in quality while there is something to gain, and
                // down in price when there is not.
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
            None => {
                for role in &roles {
                    let candidates = 0..self.space.roles()[*role].candidates.len() as u32;
                    found.extend(candidates.filter_map(|candidate| changed(*role, candidate)));
                }
                found.shuffle(&mut self.random);
            }
        }
        found
    }

    /// Whether every score is as good as it can be; then only money is left to gain.
    fn is_perfect(&self, evidence: &Evidence, combo: usize) -> bool {
        let cells = (0..self.space.datapoints()).map(|datapoint| Cell { combo, datapoint });
        let mut scores = cells.filter_map(|cell| evidence.observation(cell)?.score).peekable();
        scores.peek().is_some() && scores.all(|score| score >= 1.0 - winner::TIE)
    }

    /// The next step of a climb: the neighbours to try; empty when it is over.
    fn step(&mut self, evidence: &Evidence, climb: &mut Climb) -> Vec<usize> {
        let tried = std::mem::take(&mut climb.neighbours);
        if !tried.is_empty() {
            let best = tried.into_iter().reduce(|leader, other| {
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
    let worth = |combo: usize| winner::standing(evidence, combo).unwrap_or(f64::NEG_INFINITY);
    let (value, rival) = (worth(one), worth(two));
    value > f64::NEG_INFINITY && winner::compare(evidence, value, one, rival, two).is_gt()
}

impl Selector for HillClimbing {
    fn name(&self) -> &'static str {
        "hill_climbing"
    }

    fn next(&mut self, evidence: &Evidence) -> Step {
        loop {
            let wanted = if let Some(mut climb) = self.climb.take() {
                let neighbours = self.step(evidence, &mut climb);
                if neighbours.is_empty() {
                    continue;
                }
                climb.neighbours.clone_from(&neighbours);
                self.climb = Some(climb);
                neighbours
            } else {
                while self.starts.pop_if(|start| self.asked.contains(start)).is_some() {}
                let more = self.started < self.config.restarts;
                let Some(at) = self.starts.pop().filter(|_| more) else {
                    let reason = format!(
                        "{} of {} combinations were tried from {} starts",
                        self.asked.len(),
                        self.plan.combos,
                        self.started
                    );
                    return Plan::choose(evidence, self.asked.iter().copied(), reason);
                };
                self.started += 1;
                self.climb = Some(Climb { at, neighbours: Vec::new(), iterations: 0, stale: 0 });
                vec![at]
            };
            self.asked.extend(&wanted);
            let round = self.plan.whole(evidence, wanted);
            if !round.cells.is_empty() {
                return Step::Evaluate(round);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hints::Hint;
    use super::*;
    use crate::testing::{chosen, grid, run};

    /// Of three candidates for each of two roles, the last is best and the first is cheapest.
    fn hints() -> Hints {
        let hint = |rank: f64, price: f64| Hint { quality_rank: Some(rank), price: Some(price) };
        Hints(vec![vec![hint(3.0, 1.0), hint(2.0, 2.0), hint(1.0, 3.0)]; 2])
    }

    fn made(space: &Space, hints: Option<Hints>) -> HillClimbing {
        let config = HillClimbingConfig { hints, ..Default::default() };
        HillClimbing::new(space, config, 9).unwrap()
    }

    #[test]
    fn neighbours_differ_in_one_role_and_the_better_come_first() {
        let space = grid(&[3, 3], 2);
        let mut selector = made(&space, Some(hints()));
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
        // What was tried is not tried again.
        selector.asked.extend([5, 3]);
        assert_eq!(sorted(&selector.neighbours(4, false)), [1, 7]);
        // 0 has the cheapest and worst twice; with 1 tried, the next better of the second role is 2.
        selector.asked.insert(1);
        assert_eq!(sorted(&selector.neighbours(0, false)), [2, 6]);
        // Without hints, any change of one role will do.
        assert_eq!(sorted(&made(&space, None).neighbours(4, false)), [1, 3, 5, 7]);
    }

    #[test]
    fn it_climbs_to_the_top() {
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
            // One step up for each round, and no combination beside the way.
            let first = space.members(rounds[0].cells[0].combo);
            let steps: u32 = first.iter().map(|candidate| 3 - candidate).sum();
            assert_eq!((chosen(&end), rounds.len()), (63, 1 + steps as usize));
            assert!(rounds.iter().all(|round| round.cells.len() == 3 && round.batch == 3));
        }
    }

    #[test]
    fn patience_ends_a_climb_and_starts_are_counted() {
        let space = grid(&[10, 10], 1);
        let config = HillClimbingConfig { restarts: 2, patience: 3, ..Default::default() };
        let mut selector = HillClimbing::new(&space, config, 9).unwrap();
        // Nothing is better than anything: each start has its own cell and three neighbours.
        let (_, _, evidence) = run(&space, &mut selector, |_| Some(0.5));
        assert_eq!(evidence.cells(), 2 * (1 + 3));
    }

    #[test]
    fn errors_end_it() {
        let space = grid(&[3, 3], 2);
        let (_, end, _) = run(&space, &mut made(&space, None), |_| None);
        assert!(matches!(end, Step::GiveUp(_)));
    }

    #[test]
    fn hints_are_for_the_candidates_that_there_are() {
        let config = HillClimbingConfig { hints: Some(hints()), ..Default::default() };
        let error = HillClimbing::new(&grid(&[3, 2], 1), config, 1).unwrap_err();
        assert_eq!(error, OptionsError::Hints);
    }
}
