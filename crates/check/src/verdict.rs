//! From the findings of all checks to one status.

use bakeoff_core::{CheckResult, Status};

/// What all checks together say of an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Passed iff every required check passed.
    pub status: Status,
    /// Weighted share of the checks that passed.
    pub score: f64,
}

/// Judges an attempt by its checks' findings. Without checks, or with weights that are all zero,
/// the score follows the status.
pub fn judge(results: &[CheckResult]) -> Judgement {
    let passed = results.iter().all(|result| result.passed || !result.required);
    let total: f64 = results.iter().map(|result| result.weight).sum();
    // The sum of nothing is -0, which nobody wants to read.
    let earned: f64 =
        results.iter().filter(|result| result.passed).map(|result| result.weight).sum::<f64>()
            + 0.0;
    Judgement {
        status: if passed { Status::Passed } else { Status::Failed },
        score: if total > 0.0 { earned / total } else { f64::from(u8::from(passed)) },
    }
}
