//! A search, whoever evaluates its cells.

use crate::budget::Limit;
use crate::evidence::{Evidence, Observation};
use crate::objective::Objective;
use crate::selection::Selection;
use crate::selector::{Choice, Elimination, Selector, Step};
use crate::space::{Cell, Space};
use crate::winner;
use std::collections::{HashMap, HashSet};

/// A search that came to nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// Nobody can be chosen, since nothing was observed of anybody.
    #[error("no combination can be chosen: {0}")]
    NothingObserved(String),
    /// A selector that asks for what it has, which would go on for ever.
    #[error("the selector `{0}` asks for nothing new")]
    NothingNew(&'static str),
    /// A selector that chose without reason.
    #[error("the selector `{selector}` chose combination {combo}, {why}")]
    BadChoice {
        /// Who.
        selector: &'static str,
        /// Whom it chose.
        combo: usize,
        /// What speaks against it.
        why: &'static str,
    },
    /// Nobody costs as little as asked for.
    #[error(
        "no combination{} costs as little as asked for; the cheapest is {name} with ${cost:.6} each",
        if *all { "" } else { " that was tried" }
    )]
    TooDear {
        /// The cheapest.
        name: String,
        /// What it costs on average.
        cost: f64,
        /// Whether all were tried.
        all: bool,
    },
    /// A weight that is negative or no number.
    #[error("a weight of the objective is {0}, and must be at least 0")]
    Weight(f64),
}

/// Cells that tell what a combination costs.
const ENOUGH_TO_TELL: usize = 5;

/// What can be seen of a search between two rounds.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Rounds that are over.
    pub rounds: usize,
    /// All that is known.
    pub evidence: &'a Evidence,
    /// What was given up, as of the beginning of the round.
    pub eliminations: &'a [Elimination],
}

/// Who is told after each round.
pub type OnRound<'a> = &'a mut (dyn FnMut(Progress<'_>) + Send);

/// The state between two rounds.
pub(crate) struct Search<'a> {
    space: &'a Space,
    selector: &'a mut dyn Selector,
    evidence: Evidence,
    prior: HashMap<Cell, Observation>,
    on_round: Option<OnRound<'a>>,
    rounds: usize,
}

/// What a search wants.
pub(crate) enum Wanted {
    /// These cells. Those that were paid for before have their observation.
    Cells { cells: Vec<(Cell, Option<Observation>)>, batch: usize },
    /// Nothing more.
    Nothing(Box<Selection>),
}

impl<'a> Search<'a> {
    /// What was observed before is used when the selector asks for it, so that a search that goes on
    /// makes the same choices as one that was never stopped.
    pub(crate) fn new(
        space: &'a Space,
        selector: &'a mut dyn Selector,
        objective: Objective,
        prior: Vec<(Cell, Observation)>,
        on_round: Option<OnRound<'a>>,
    ) -> Result<Search<'a>, SelectError> {
        for weight in [objective.cost_weight, objective.latency_weight] {
            if !(weight >= 0.0 && weight.is_finite()) {
                return Err(SelectError::Weight(weight));
            }
        }
        let evidence = Evidence::new(space, objective);
        let prior = prior.into_iter().map(|(cell, seen)| (cell, sound(seen))).collect();
        Ok(Search { space, selector, evidence, prior, on_round, rounds: 0 })
    }

    /// What to evaluate now.
    pub(crate) fn next(&mut self) -> Result<Wanted, SelectError> {
        if self.space.combos() > 0
            && self.is_hopeless()
            && let Some(error) = self.too_dear()
        {
            return Err(error);
        }
        match self.selector.next(&self.evidence) {
            Step::Evaluate(round) => {
                let mut asked = HashSet::new();
                let mut cells = round.cells;
                cells.retain(|cell| {
                    cell.combo < self.space.combos()
                        && cell.datapoint < self.space.datapoints()
                        && !self.evidence.is_visited(*cell)
                        && asked.insert(*cell)
                });
                if cells.is_empty() {
                    return Err(SelectError::NothingNew(self.selector.name()));
                }
                let known = cells.into_iter().map(|cell| (cell, self.prior.remove(&cell)));
                Ok(Wanted::Cells { cells: known.collect(), batch: round.batch })
            }
            Step::Choose(choice) => self.finish(choice, None).map(Wanted::Nothing),
            Step::GiveUp(reason) => Err(SelectError::NothingObserved(reason)),
        }
    }

    /// Adds what a round gave, in the order of its cells, so that sums do not depend on who was first.
    pub(crate) fn add(&mut self, round: impl IntoIterator<Item = (Cell, Observation)>) {
        for (cell, observation) in round {
            self.evidence.add(cell, observation);
        }
        self.evidence.fix_scales();
        self.rounds += 1;
        if let Some(on_round) = &mut self.on_round {
            on_round(Progress {
                rounds: self.rounds,
                evidence: &self.evidence,
                eliminations: self.selector.eliminations(),
            });
        }
    }

    /// Ends before the selector has seen enough: the best so far of those that were not given up.
    pub(crate) fn stop(&mut self, limit: Limit) -> Result<Box<Selection>, SelectError> {
        let gone = self.selector.eliminations();
        let left = |combo: &usize| !gone.iter().any(|gone| gone.combo == *combo);
        let observed = |choice: &Choice| self.evidence.figures(choice.combo).n > 0;
        let (combo, confidence) = match self.selector.so_far(&self.evidence).filter(observed) {
            Some(choice) => (choice.combo, choice.confidence),
            None => {
                let left = (0..self.space.combos()).filter(left);
                let best = winner::best_so_far(&self.evidence, left)
                    .ok_or_else(|| SelectError::NothingObserved(limit.to_string()))?;
                (best, None)
            }
        };
        let choice = Choice { combo, confidence, reason: format!("{limit}; the best so far") };
        self.finish(choice, Some(limit))
    }

    /// The choice, or the best of those that are not too dear.
    fn affordable(&self, choice: Choice) -> Result<Choice, SelectError> {
        if self.evidence.is_affordable(choice.combo) {
            return Ok(choice);
        }
        let gone = self.selector.eliminations();
        let left = |combo: &usize| !gone.iter().any(|gone| gone.combo == *combo);
        let within = |combo: &usize| self.evidence.is_affordable(*combo) && left(combo);
        let within = (0..self.space.combos()).filter(within);
        if let Some(combo) = winner::best_so_far(&self.evidence, within) {
            let reason = format!("{}; who was ahead turned out to be too dear", choice.reason);
            return Ok(Choice { combo, confidence: None, reason });
        }
        Err(self.too_dear().unwrap_or(SelectError::NothingObserved(choice.reason)))
    }

    /// Who is the cheapest, of all that are too dear; `None` when nothing was tried.
    fn too_dear(&self) -> Option<SelectError> {
        let cost = |combo: usize| Some((self.evidence.mean_cost(combo)?, combo));
        let costs: Vec<(f64, usize)> = (0..self.space.combos()).filter_map(cost).collect();
        let cheapest = costs.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
        let (name, all) = (self.space.describe(cheapest.1), costs.len() == self.space.combos());
        Some(SelectError::TooDear { name, cost: cheapest.0, all })
    }

    /// Whether all have shown that they are too dear, so that there is nobody to look for.
    fn is_hopeless(&self) -> bool {
        let enough = ENOUGH_TO_TELL.min(self.space.datapoints());
        let is_out = |combo: usize| {
            self.evidence.visited(combo).0 >= enough && !self.evidence.is_affordable(combo)
        };
        (0..self.space.combos()).all(is_out)
    }

    fn finish(
        &self,
        choice: Choice,
        stopped: Option<Limit>,
    ) -> Result<Box<Selection>, SelectError> {
        let choice = self.affordable(choice)?;
        let (selector, combo) = (self.selector.name(), choice.combo);
        let eliminations = self.selector.eliminations();
        if self.evidence.figures(combo).n == 0 {
            let why = "of which nothing was observed";
            return Err(SelectError::BadChoice { selector, combo, why });
        }
        if eliminations.iter().any(|gone| gone.combo == combo) {
            return Err(SelectError::BadChoice { selector, combo, why: "which it had given up" });
        }
        let (space, evidence) = (self.space, &self.evidence);
        let found = Selection::new(space, evidence, selector, choice, stopped, eliminations);
        // What was paid for and never asked for again was paid for all the same.
        let unused: f64 = self.prior.values().map(|known| known.paid).sum();
        Ok(Box::new(Selection { spent: found.spent + unused, ..found }))
    }
}

/// A score that is no number is an error, and a price or time that is none is unknown. Whatever
/// comes from outside goes through here, before it is added to anything.
pub(crate) fn sound(seen: Observation) -> Observation {
    let amount = |amount: f64| if amount.is_finite() { amount.max(0.0) } else { 0.0 };
    Observation {
        score: seen.score.filter(|score| score.is_finite()),
        cost: amount(seen.cost),
        paid: amount(seen.paid),
        latency: amount(seen.latency),
    }
}
