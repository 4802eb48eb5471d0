//! Statistics for evaluations: intervals, tests, power and stopping rules.
//!
//! Pure functions, each with its source; they know nothing about suites or runs. Random methods take a
//! seed, so equal arguments give equal results.

mod agreement;
mod beta;
mod betting;
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

pub use agreement::{AgreementTable, Kappa, krippendorff};
pub use bootstrap::{MIN_BOOTSTRAP_CASES, bootstrap};
pub use bradley::bradley_terry;
pub use components::{VarianceComponents, variance_components};
pub use confident::{Boundaries, FullRunEvidence, full_run_evidence};
pub use correction::{LabelAccuracy, corrected_rate};
pub use cost::{CostRatio, geometric_ratio, total_ratio};
pub use evidence::{RateEvidence, TrueRate, confidence_sequence};
pub use flake::{disagreement, flake_rate, is_flaky};
pub use flip::SignFlip;
pub use gate::{Risk, all_cases, rate_bounds, share_of_cases};
pub use holm::{holm, holm_levels};
pub use mcnemar::{mcnemar, mcnemar_interval};
pub use mean::{CaseRate, MeanEstimate, mean_pass_rate, mean_score, mean_value, naive_error};
pub use paired::{PairedDifferences, differences};
pub use passk::{ProbabilityEstimate, pass_at_k, pass_hat_k};
pub use power::{VarianceSplit, binary_cases_needed, cases_needed, detectable_difference, power};
pub use quantile::{Quantile, quantile, quantile_rank};
pub use rate::{Interval, clopper_pearson, jeffreys, wilson};
pub use threshold::{Decision, Threshold, ThresholdError};

/// The 0.975 quantile of the standard normal distribution: 95 % of values are within ± this.
pub(crate) const Z: f64 = 1.959_963_984_540_054;
