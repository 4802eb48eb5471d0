//! How sure are we?
//!
//! Pure functions with their sources named; nothing here knows what a suite is.

mod mean;
mod rate;
mod threshold;

pub use mean::{CaseRate, Estimate, mean_pass_rate};
pub use rate::{Interval, wilson};
pub use threshold::{Decision, Threshold, ThresholdError};

/// The 0.975 quantile of the standard normal distribution: 95 % lie within ± this.
pub(crate) const Z: f64 = 1.959_963_984_540_054;
