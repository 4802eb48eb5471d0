//! Search for the best combination of models.
//!
//! An agent has roles, each role has candidates, and a *combination* has one candidate for each role. A
//! *cell* is one combination on one datapoint; evaluating it gives an [`Observation`]. A [`Selector`]
//! decides which cells to evaluate next and when to stop. Selectors are pure: the same seed and the same
//! observations give the same choice, however the cells are evaluated.
//!
//! [`Selection`] searches over an async closure. [`select_best`] is the lower level, over an [`Evaluate`]
//! implementation; [`replay`] runs on recorded cells. [`build_selector`] creates a selector by name.
//!
//! ```
//! use bakeoff_core::NanoDollars;
//! use bakeoff_select::{CellScore, Selection};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let result = Selection::new()
//!     .role("planner", ["small", "large"])
//!     .role("solver", ["small", "large"])
//!     .datapoints(100)
//!     .run(|combination, datapoint| async move {
//!         // Call the models of the combination here.
//!         let passed = &combination["solver"] == "large" || datapoint % 4 == 0;
//!         Ok(CellScore::from(passed).cost(NanoDollars(250_000)))
//!     })
//!     .await?;
//! assert_eq!(&result.winner["solver"], "large");
//! println!("{}: {:.0} % after {} cells", result.winner, 100.0 * result.score, result.outcome.cells);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adjusted;
mod auto;
mod bet;
mod budget;
mod cell_feeder;
mod cheapest_within;
mod combination;
mod driver;
mod evidence;
mod gap;
mod gp;
mod money;
mod objective;
mod outcome;
mod ranking;
mod replay;
mod search;
mod selection;
mod selector;
mod selectors;
mod space;
mod strict;
#[cfg(test)]
mod testing;
mod winner;

pub use auto::{Auto, AutoOptions, AutoTuning};
pub use budget::{SearchBudget, SearchLimit};
pub use cell_feeder::{CellFeeder, PoolLoads};
pub use cheapest_within::CheapestWithin;
pub use combination::Combination;
pub use driver::{Evaluate, SearchOptions, select_best};
pub use evidence::{Evidence, Observation, ScoreStats};
pub use gap::PairedGap;
pub use objective::Objective;
pub use outcome::SearchOutcome;
pub use ranking::{RankedCombination, rank_combinations};
pub use replay::replay;
pub use search::{OnRound, SearchProgress, SelectError};
pub use selection::{
    CellError, CellFailure, CellScore, Error, Selection, SelectionProgress, SelectionResult,
};
pub use selector::{Elimination, EvaluationRound, Selector, SelectorChoice, SelectorStep};
pub use selectors::{
    ArmElimination, ArmEliminationConfig, Bayesian, BayesianConfig, Briefing, BruteForce,
    EpsilonLucb, EpsilonLucbConfig, HillClimbing, HillClimbingConfig, Hint, Hints, LmProposal,
    MatrixUcb, MatrixUcbConfig, OptionsError, Proposal, ProposalIssue, ProposalProblem, Propose,
    ProposeError, RandomSearch, RandomSearchConfig, RoleBriefing, SELECTOR_NAMES, SelectorOptions,
    ThresholdSe, ThresholdSeConfig, build_selector,
};
pub use space::{Cell, Role, Space, SpaceError};
pub use strict::{Strict, StrictOptions};
