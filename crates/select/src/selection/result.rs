//! Result, progress and errors of a [`Selection`](super::Selection).

use super::cell::CellFailure;
use crate::combination::Combination;
use crate::outcome::SearchOutcome;
use crate::ranking::RankedCombination;
use crate::search::{SearchProgress, SelectError};
use crate::selectors::OptionsError;
use crate::space::{Space, SpaceError};
use crate::winner;
use bakeoff_core::NanoDollars;
use std::sync::Arc;

/// Result of a [`Selection`](super::Selection).
#[derive(Debug)]
#[non_exhaustive]
pub struct SelectionResult {
    /// The best combination.
    pub winner: Combination,
    /// Its mean score.
    pub score: f64,
    /// Confidence that it is the best; absent if the method makes no such claim.
    pub confidence: Option<f64>,
    /// Amount spent on the search, as far as known.
    pub spent: NanoDollars,
    /// Ranking, eliminations, Pareto front and the reason to stop. Combinations have numbers there, see
    /// [`SelectionResult::combination`].
    pub outcome: SearchOutcome,
    /// The first cells that errored, at most 100; the ranking has the count of each combination.
    pub failures: Vec<CellFailure>,
    space: Arc<Space>,
}

impl SelectionResult {
    /// Creates a result of unknown cost, for tests of code that uses results. The ranking holds only the winner;
    /// set the other fields as needed.
    ///
    /// ```
    /// use bakeoff_select::{Combination, SelectionResult};
    ///
    /// let winner = Combination::of([("planner", "large"), ("solver", "small")])?;
    /// let mut result = SelectionResult::new(winner, 0.9);
    /// result.confidence = Some(0.95);
    /// assert_eq!(result.winner.to_string(), "planner=large + solver=small");
    /// # Ok::<(), bakeoff_select::SpaceError>(())
    /// ```
    pub fn new(winner: Combination, score: f64) -> SelectionResult {
        let ranked = RankedCombination {
            combo: winner.number(),
            name: winner.to_string(),
            mean: Some(score),
            interval: None,
            score: Some(score),
            adjusted: Some(score),
            adjusted_score: Some(score),
            n: 1,
            gap: None,
            errors: 0,
            cost: None,
            latency: 0.0,
            eliminated: false,
            over_cost_limit: false,
        };
        let outcome = SearchOutcome {
            selector: "auto".to_owned(),
            winner: winner.number(),
            confidence: None,
            claim: None,
            reason: String::new(),
            stopped: None,
            ranking: vec![ranked],
            equivalents: Vec::new(),
            next: None,
            eliminations: Vec::new(),
            cells: 1,
            cells_of: winner.space().cells(),
            spent: None,
            unknown_costs: 1,
            saved: NanoDollars::default(),
            avoided: None,
            front: vec![winner.number()],
        };
        SelectionResult::of_search(Arc::clone(winner.space()), outcome, Vec::new())
    }

    pub(super) fn of_search(
        space: Arc<Space>,
        outcome: SearchOutcome,
        failures: Vec<CellFailure>,
    ) -> SelectionResult {
        let is_winner = |combo: usize| combo == outcome.winner;
        let ranked = outcome.ranking.iter().find(|ranked| is_winner(ranked.combo));
        SelectionResult {
            winner: Combination::new(Arc::clone(&space), outcome.winner),
            // A winner without a score is an error of the search.
            score: ranked.and_then(|ranked| ranked.score).unwrap_or_default(),
            confidence: outcome.confidence,
            spent: outcome.spent.unwrap_or_default(),
            outcome,
            failures,
            space,
        }
    }

    /// Returns a combination by its number; `None` if there is no such combination.
    pub fn combination(&self, combo: usize) -> Option<Combination> {
        let is_known = combo < self.space.combos();
        is_known.then(|| Combination::new(Arc::clone(&self.space), combo))
    }
}

/// Snapshot of a [`Selection`](super::Selection) after a round.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SelectionProgress {
    /// Finished rounds.
    pub rounds: usize,
    /// Evaluated cells, errors included.
    pub cells: usize,
    /// Cells of the whole space.
    pub total_cells: usize,
    /// Eliminated combinations.
    pub eliminated: usize,
    /// Amount spent, as far as known.
    pub spent: NanoDollars,
    /// Best combination so far and its mean of the objective; absent while all cells errored.
    pub leader: Option<(Combination, f64)>,
}

impl SelectionProgress {
    pub(super) fn new(space: &Arc<Space>, progress: SearchProgress<'_>) -> SelectionProgress {
        let SearchProgress { rounds, evidence, eliminations } = progress;
        let is_eliminated =
            |combo: usize| eliminations.iter().any(|elimination| elimination.combo == combo);
        let remaining = (0..space.combos()).filter(|combo| !is_eliminated(*combo));
        let leader = winner::best_so_far(evidence, remaining)
            .map(|combo| (Combination::new(Arc::clone(space), combo), evidence.stats(combo).mean));
        SelectionProgress {
            rounds,
            cells: evidence.cells(),
            total_cells: space.cells(),
            eliminated: eliminations.len(),
            spent: evidence.spent().unwrap_or_default(),
            leader,
        }
    }
}

/// Error of a [`Selection`](super::Selection).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The roles, candidates or datapoints are invalid.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The method or one of its options is invalid.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The search has no winner.
    #[error("{source}{}", last_failure(.failures))]
    Search {
        /// The reason.
        source: SelectError,
        /// The first cells that errored, at most 100.
        failures: Vec<CellFailure>,
    },
}

fn last_failure(failures: &[CellFailure]) -> String {
    failures.last().map_or_else(String::new, |failure| format!("; for example {failure}"))
}
