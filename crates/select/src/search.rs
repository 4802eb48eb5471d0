//! State of a search between rounds, independent of how cells are evaluated.

use crate::budget::SearchLimit;
use crate::evidence::{Evidence, Observation};
use crate::objective::Objective;
use crate::outcome::SearchOutcome;
use crate::selector::{Elimination, Selector, SelectorChoice, SelectorStep};
use crate::space::{Cell, Space};
use crate::winner;
use bakeoff_core::NanoDollars;
use std::collections::{HashMap, HashSet};

/// A search without a winner.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// No combination has a score.
    #[error("no combination can be chosen: {0}")]
    NothingObserved(String),
    /// The selector requested no new cells, which would repeat forever.
    #[error("selector `{0}` requested no new cells")]
    NothingNew(&'static str),
    /// The selector chose a combination without observations.
    #[error("selector `{selector}` chose combination {combo}, which has no observations")]
    UnobservedChoice {
        /// Name of the selector.
        selector: &'static str,
        /// Number of the combination.
        combo: usize,
    },
    /// The selector chose a combination that it had eliminated.
    #[error("selector `{selector}` chose combination {combo}, which it had eliminated")]
    EliminatedChoice {
        /// Name of the selector.
        selector: &'static str,
        /// Number of the combination.
        combo: usize,
    },
    /// Every evaluated combination costs more than the objective allows.
    #[error(
        "no {}combination is within the cost limit; the cheapest is {name} at ${:.6} per datapoint",
        if *all { "" } else { "evaluated " },
        cost.as_dollars()
    )]
    OverCostLimit {
        /// The cheapest combination.
        name: String,
        /// Its mean cost.
        cost: NanoDollars,
        /// Whether all combinations were evaluated.
        all: bool,
    },
    /// A weight of the objective is negative or not a number.
    #[error("objective weight is {0}, must be at least 0")]
    Weight(f64),
}

/// Cells after which the mean cost of a combination is considered known.
const MIN_COST_CELLS: usize = 5;

/// Snapshot of a search after a round.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SearchProgress<'a> {
    /// Finished rounds.
    pub rounds: usize,
    /// All observations.
    pub evidence: &'a Evidence,
    /// Eliminations as of the start of the round.
    pub eliminations: &'a [Elimination],
}

impl<'a> SearchProgress<'a> {
    /// Creates a snapshot, for tests of callbacks.
    pub fn new(
        rounds: usize,
        evidence: &'a Evidence,
        eliminations: &'a [Elimination],
    ) -> SearchProgress<'a> {
        SearchProgress { rounds, evidence, eliminations }
    }
}

/// Callback after each round.
pub type OnRound<'a> = &'a mut (dyn FnMut(SearchProgress<'_>) + Send);

/// State of a search between two rounds.
pub(crate) struct SearchState<'a> {
    space: &'a Space,
    selector: &'a mut dyn Selector,
    evidence: Evidence,
    prior: HashMap<Cell, Observation>,
    on_round: Option<OnRound<'a>>,
    rounds: usize,
}

/// Next action of a search.
pub(crate) enum SearchAction {
    /// Evaluate these cells. Cells of an earlier process carry their observation.
    Evaluate(Vec<(Cell, Option<Observation>)>),
    /// The search is finished.
    Finish(Box<SearchOutcome>),
}

impl<'a> SearchState<'a> {
    /// Creates the state before the first round.
    ///
    /// Observations in `prior` are used when the selector requests their cells, so a resumed search
    /// makes the same choices as an uninterrupted one.
    pub(crate) fn new(
        space: &'a Space,
        selector: &'a mut dyn Selector,
        objective: Objective,
        prior: Vec<(Cell, Observation)>,
        on_round: Option<OnRound<'a>>,
    ) -> Result<SearchState<'a>, SelectError> {
        for weight in [objective.cost_weight, objective.latency_weight] {
            if !(weight >= 0.0 && weight.is_finite()) {
                return Err(SelectError::Weight(weight));
            }
        }
        let evidence = Evidence::new(space, objective);
        let prior =
            prior.into_iter().map(|(cell, observation)| (cell, sanitize(observation))).collect();
        Ok(SearchState { space, selector, evidence, prior, on_round, rounds: 0 })
    }

    /// Returns what to do next.
    pub(crate) fn next(&mut self) -> Result<SearchAction, SelectError> {
        if self.space.combos() > 0
            && self.are_all_over_cost_limit()
            && let Some(error) = self.over_cost_limit()
        {
            return Err(error);
        }
        match self.selector.next(&self.evidence) {
            SelectorStep::Evaluate(round) => {
                let mut requested = HashSet::new();
                let mut cells = round.cells;
                cells.retain(|cell| {
                    cell.combo < self.space.combos()
                        && cell.datapoint < self.space.datapoints()
                        && !self.evidence.is_visited(*cell)
                        && requested.insert(*cell)
                });
                if cells.is_empty() {
                    return Err(SelectError::NothingNew(self.selector.name()));
                }
                let cells = cells.into_iter().map(|cell| (cell, self.prior.remove(&cell)));
                Ok(SearchAction::Evaluate(cells.collect()))
            }
            SelectorStep::Choose(choice) => self.finish(choice, None).map(SearchAction::Finish),
            SelectorStep::NoWinner(reason) => Err(SelectError::NothingObserved(reason)),
        }
    }

    /// Adds the observations of a round in the order of its cells, so sums do not depend on which
    /// cell finished first.
    pub(crate) fn add(&mut self, round: impl IntoIterator<Item = (Cell, Observation)>) {
        for (cell, observation) in round {
            self.evidence.add(cell, observation);
        }
        self.evidence.fix_scales();
        self.rounds += 1;
        if let Some(on_round) = &mut self.on_round {
            on_round(SearchProgress {
                rounds: self.rounds,
                evidence: &self.evidence,
                eliminations: self.selector.eliminations(),
            });
        }
    }

    /// Ends the search early with the best combination so far that was not eliminated.
    pub(crate) fn stop(&mut self, limit: SearchLimit) -> Result<Box<SearchOutcome>, SelectError> {
        let is_observed = |choice: &SelectorChoice| self.evidence.stats(choice.combo).n > 0;
        let (combo, confidence) = match self.selector.so_far(&self.evidence).filter(is_observed) {
            Some(choice) => (choice.combo, choice.confidence),
            None => {
                let remaining =
                    (0..self.space.combos()).filter(|combo| !self.is_eliminated(*combo));
                let best = winner::best_so_far(&self.evidence, remaining)
                    .ok_or_else(|| SelectError::NothingObserved(limit.to_string()))?;
                (best, None)
            }
        };
        let caveat = self.selector.caveat(&self.evidence).map(|caveat| format!("; {caveat}"));
        let reason = format!("{limit}; best combination so far{}", caveat.unwrap_or_default());
        self.finish(SelectorChoice { combo, confidence, reason }, Some(limit))
    }

    fn is_eliminated(&self, combo: usize) -> bool {
        self.selector.eliminations().iter().any(|elimination| elimination.combo == combo)
    }

    /// Returns the choice, or the best combination within the cost limit if the choice exceeds it.
    fn within_cost_limit(&self, choice: SelectorChoice) -> Result<SelectorChoice, SelectError> {
        if self.evidence.is_within_cost_limit(choice.combo) {
            return Ok(choice);
        }
        let within = (0..self.space.combos()).filter(|combo| {
            self.evidence.is_within_cost_limit(*combo) && !self.is_eliminated(*combo)
        });
        if let Some(combo) = winner::best_so_far(&self.evidence, within) {
            let reason = format!("{}; the leader exceeds the cost limit", choice.reason);
            return Ok(SelectorChoice { combo, confidence: None, reason });
        }
        Err(self.over_cost_limit().unwrap_or(SelectError::NothingObserved(choice.reason)))
    }

    /// The error that names the cheapest combination; `None` if nothing was evaluated.
    fn over_cost_limit(&self) -> Option<SelectError> {
        let cost = |combo: usize| Some((self.evidence.mean_cost(combo)?, combo));
        let costs: Vec<(NanoDollars, usize)> = (0..self.space.combos()).filter_map(cost).collect();
        let cheapest = costs.iter().min_by_key(|(cost, _)| *cost)?;
        let (name, all) = (self.space.describe(cheapest.1), costs.len() == self.space.combos());
        Some(SelectError::OverCostLimit { name, cost: cheapest.0, all })
    }

    /// Whether all combinations are known to exceed the cost limit, so that none can win.
    fn are_all_over_cost_limit(&self) -> bool {
        let min_cells = MIN_COST_CELLS.min(self.space.datapoints());
        (0..self.space.combos()).all(|combo| {
            self.evidence.visited(combo).0 >= min_cells
                && !self.evidence.is_within_cost_limit(combo)
        })
    }

    fn finish(
        &self,
        choice: SelectorChoice,
        stopped: Option<SearchLimit>,
    ) -> Result<Box<SearchOutcome>, SelectError> {
        let choice = self.within_cost_limit(choice)?;
        let (selector, combo) = (self.selector.name(), choice.combo);
        if self.evidence.stats(combo).n == 0 {
            return Err(SelectError::UnobservedChoice { selector, combo });
        }
        if self.is_eliminated(combo) {
            return Err(SelectError::EliminatedChoice { selector, combo });
        }
        let (space, evidence) = (self.space, &self.evidence);
        let eliminations = self.selector.eliminations();
        let mut outcome =
            SearchOutcome::new(space, evidence, selector, choice, stopped, eliminations);
        outcome.claim = self.selector.claim().filter(|_| outcome.confidence.is_some());
        // Prior cells that were not requested again were paid for as well.
        for observation in self.prior.values() {
            outcome.add_cost(observation.paid);
            outcome.unknown_costs += usize::from(observation.cost.is_none());
        }
        Ok(Box::new(outcome))
    }
}

/// Turns a score that is not a number into an error, and an invalid cost or latency into 0.
///
/// Every observation from outside passes through here before it is added to anything.
pub(crate) fn sanitize(observation: Observation) -> Observation {
    let Observation { score, cost, paid, latency } = observation;
    Observation {
        score: score.filter(|score| score.is_finite()),
        cost: cost.map(|cost| cost.max(NanoDollars::default())),
        paid: paid.max(NanoDollars::default()),
        latency: if latency.is_finite() { latency.max(0.0) } else { 0.0 },
    }
}
