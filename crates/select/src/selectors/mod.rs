//! Selectors, each available by name.
//!
//! All treat errors as missing data that is never retried, visit the datapoints in an order fixed by
//! the seed, and choose the best of the remaining combinations by the same rule.

mod arm_elimination;
mod bayesian;
mod brute_force;
mod epsilon_lucb;
mod error;
mod hill_climbing;
mod hints;
mod lm_proposal;
mod matrix_ucb;
mod plan;
mod random_search;
mod registry;
mod threshold_se;

pub use arm_elimination::{ArmElimination, ArmEliminationConfig};
pub use bayesian::{Bayesian, BayesianConfig};
pub use brute_force::BruteForce;
pub use epsilon_lucb::{EpsilonLucb, EpsilonLucbConfig};
pub use error::OptionsError;
pub use hill_climbing::{HillClimbing, HillClimbingConfig};
pub use hints::{Hint, Hints};
pub use lm_proposal::{
    Briefing, LmProposal, Proposal, ProposalIssue, ProposalProblem, Propose, ProposeError,
    RoleBriefing,
};
pub use matrix_ucb::{MatrixUcb, MatrixUcbConfig};
pub(crate) use plan::NO_SCORES;
pub use random_search::{RandomSearch, RandomSearchConfig};
pub use registry::{SELECTOR_NAMES, SelectorOptions, build_selector};
pub use threshold_se::{ThresholdSe, ThresholdSeConfig};
