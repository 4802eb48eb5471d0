//! How sure are we?
//!
//! Pure functions with their sources named; nothing here knows what a suite is. What is random
//! takes a seed, so the same question gets the same answer.

mod agreement;
mod beta;
mod bootstrap;
mod bradley;
mod components;
mod confident;
mod correction;
mod cost;
mod evidence;
mod flake;
mod flip;
mod gate;
mod holm;
mod mcnemar;
mod mean;
mod paired;
mod passk;
mod power;
mod quantile;
mod rate;
mod student;
#[cfg(test)]
mod testing;
mod threshold;

pub use agreement::{Kappa, Table, krippendorff};
pub use bootstrap::{BOOTSTRAP_CASES, bootstrap};
pub use bradley::bradley_terry;
pub use components::{Components, components};
pub use confident::{Boundaries, FullRunEvidence, full_run_evidence};
pub use correction::{Labelled, corrected_rate};
pub use cost::{Ratio, geometric_ratio, total_ratio};
pub use evidence::{RateEvidence, TrueRate, confidence_sequence};
pub use flake::{disagreement, flake_rate, is_flaky};
pub use flip::SignFlip;
pub use gate::{Risk, all_cases, rate_bounds, share_of_cases};
pub use holm::holm;
pub use mcnemar::{bonett_price, mcnemar};
pub use mean::{CaseRate, Estimate, mean_pass_rate, mean_score, naive_error};
pub use paired::{Paired, differences};
pub use passk::{Chance, pass_at_k, pass_hat_k};
pub use power::{Split, binary_cases_needed, cases_needed, detectable_difference, power};
pub use quantile::{Quantile, quantile, quantile_rank};
pub use rate::{Interval, clopper_pearson, jeffreys, wilson};
pub use threshold::{Decision, Threshold, ThresholdError};

/// The 0.975 quantile of the standard normal distribution: 95 % lie within ± this.
pub(crate) const Z: f64 = 1.959_963_984_540_054;
