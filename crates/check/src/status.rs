//! Combines the results of all checks into one status and score.

use bakeoff_core::{CheckResult, Status};

/// The combined result of an attempt's checks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CombinedResult {
    /// Passed iff every required check passed.
    pub status: Status,
    /// Weighted mean of the scores of the checks.
    pub score: f64,
}

/// Combines check results. Without checks, or with weights that are all zero, the score follows the status.
pub fn combine_results(results: &[CheckResult]) -> CombinedResult {
    let passed = results.iter().all(|result| result.passed || !result.required);
    let total: f64 = results.iter().map(|result| result.weight).sum();
    // The sum of an empty iterator is -0.0; adding 0.0 normalizes the sign.
    let earned: f64 = results.iter().map(|result| result.weight * result.score).sum::<f64>() + 0.0;
    CombinedResult {
        status: if passed { Status::Passed } else { Status::Failed },
        score: if total > 0.0 {
            (earned / total).clamp(0.0, 1.0)
        } else {
            f64::from(u8::from(passed))
        },
    }
}
