//! Selectors, each of which can be had by name.
//!
//! They share what they are told (errors are missing data and are never tried again), the order of
//! the datapoints, which the seed fixes, and who is best of those that are left.

mod arm_elimination;
mod bayesian;
mod brute_force;
mod epsilon_lucb;
mod error;
mod hill_climbing;
mod hints;
mod lm_proposal;
mod matrix_ucb;
mod named;
mod plan;
mod random_search;
mod threshold_se;

pub use arm_elimination::{ArmElimination, ArmEliminationConfig};
pub use bayesian::{Bayesian, BayesianConfig};
pub use brute_force::BruteForce;
pub use epsilon_lucb::{EpsilonLucb, EpsilonLucbConfig};
pub use error::OptionsError;
pub use hill_climbing::{HillClimbing, HillClimbingConfig};
pub use hints::{Hint, Hints};
pub use lm_proposal::{Briefing, LmProposal, Proposal, Propose, RoleBriefing};
pub use matrix_ucb::{MatrixUcb, MatrixUcbConfig};
pub use named::{NAMES, SelectorOptions, named};
pub use random_search::{RandomSearch, RandomSearchConfig};
pub use threshold_se::{ThresholdSe, ThresholdSeConfig};
