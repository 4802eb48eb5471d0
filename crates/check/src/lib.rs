//! Is this answer right?
//!
//! A [`Check`] is refined from what the user wrote, once; [`Check::run`] judges one [`Attempt`].
//! Values may be templates: the caller renders them, because only it knows the case.

mod kind;
mod verdict;

pub use kind::{KINDS, Kind, KindInfo, ParameterInfo, ParameterType};
pub use verdict::{Judgement, judge};

use bakeoff_core::{Attempt, CheckResult};

/// One check, ready to judge attempts.
#[derive(Debug, Clone)]
pub struct Check {
    /// Names the check in results; unique within its suite.
    pub id: String,
    /// What it looks at.
    pub kind: Kind,
    /// Passes when the kind would fail.
    pub negate: bool,
    /// Whether the trial depends on it.
    pub required: bool,
    /// Its share of the score.
    pub weight: f64,
}

/// A check cannot be made from what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pattern is no regular expression.
    #[error("not a regular expression: {0}")]
    BadRegex(String),
}

impl Check {
    /// Judges an attempt.
    pub fn run(&self, attempt: &Attempt) -> CheckResult {
        let holds = self.kind.holds(attempt);
        let passed = holds != self.negate;
        let message = if passed { String::new() } else { self.kind.words(attempt, holds) };
        CheckResult {
            check: self.id.clone(),
            passed,
            required: self.required,
            weight: self.weight,
            message,
        }
    }
}
