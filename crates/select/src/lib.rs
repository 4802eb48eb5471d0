//! Which combination is best?
//!
//! An agent has roles, each role has candidates, and a *combination* has one candidate for each role.
//! A *cell* is a combination on a datapoint; paying for it gives an [`Observation`]. A [`Selector`]
//! says which cells to pay for next and when it has seen enough. Selectors are pure: the same seed
//! and the same observations give the same choice, however the cells are evaluated. [`select_best`]
//! pays for cells that take time, many at once and within a [`Budget`]; [`replay`] looks them up.
//! [`named`] makes a selector from its name.

mod auto;
mod bet;
mod budget;
mod concurrency;
mod driver;
mod evidence;
mod frugal;
mod gp;
mod objective;
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

pub use auto::{Auto, AutoOptions, Tuning};
pub use budget::{Budget, Limit};
pub use concurrency::Concurrency;
pub use driver::{Evaluate, Options, select_best};
pub use evidence::{Evidence, Observation, RowFigures};
pub use frugal::Frugal;
pub use objective::Objective;
pub use replay::replay;
pub use search::{OnRound, Progress, SelectError};
pub use selection::{Ranked, Selection, ranking};
pub use selector::{Choice, Elimination, Round, Selector, Step};
pub use selectors::{
    ArmElimination, ArmEliminationConfig, Bayesian, BayesianConfig, Briefing, BruteForce,
    EpsilonLucb, EpsilonLucbConfig, HillClimbing, HillClimbingConfig, Hint, Hints, LmProposal,
    MatrixUcb, MatrixUcbConfig, NAMES, OptionsError, Proposal, Propose, RandomSearch,
    RandomSearchConfig, RoleBriefing, SelectorOptions, ThresholdSe, ThresholdSeConfig, named,
};
pub use space::{Cell, Role, Space, SpaceError};
pub use strict::{Strict, StrictOptions};
