//! Errors of selector options, and checks that return them.

use super::lm_proposal::{ProposalIssue, ProposeError};

/// A selector that cannot be created with the given options.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// No selector has this name.
    #[error("unknown selector `{name}`; available: {}", super::SELECTOR_NAMES.join(", "))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// An option of a different selector.
    #[error("selector `{selector}` has no option `{option}`")]
    Unused {
        /// Name of the selector.
        selector: String,
        /// Name of the option.
        option: &'static str,
    },
    /// A fraction out of range.
    #[error("fraction is {0}, must be above 0 and at most 1")]
    Fraction(f64),
    /// A confidence out of range.
    #[error("confidence is {0}, must be at least 0.5 and below 1")]
    Confidence(f64),
    /// A threshold out of range.
    #[error("threshold is {0}, must be between 0 and 1")]
    Threshold(f64),
    /// An option below its minimum.
    #[error("{option} is {value}, must be at least {min}")]
    TooSmall {
        /// Name of the option.
        option: &'static str,
        /// Its value.
        value: f64,
        /// Its minimum.
        min: f64,
    },
    /// Hints that do not match the candidates of the space.
    #[error("hints must have one entry for each candidate of each role")]
    Hints,
    /// A rank that is not a number.
    #[error("hint for role `{0}` is not a number")]
    HintNotANumber(String),
    /// No proposal can be evaluated.
    #[error("no usable proposals{}", listed(.issues))]
    NoProposals {
        /// Why each proposal is unusable.
        issues: Vec<ProposalIssue>,
    },
    /// The proposing model gave no proposals.
    #[error("no proposals: {0}")]
    NotProposed(#[source] ProposeError),
}

/// The items, each after a semicolon.
pub(super) fn listed(issues: &[ProposalIssue]) -> String {
    issues.iter().map(|issue| format!("; {issue}")).collect()
}

/// Checks that a share is in (0, 1].
pub(crate) fn fraction(value: f64) -> Result<f64, OptionsError> {
    if value > 0.0 && value <= 1.0 { Ok(value) } else { Err(OptionsError::Fraction(value)) }
}

/// Checks that a probability is in [0.5, 1).
pub(crate) fn confidence(value: f64) -> Result<f64, OptionsError> {
    if (0.5..1.0).contains(&value) { Ok(value) } else { Err(OptionsError::Confidence(value)) }
}

/// Checks that a number is finite and at least `min`.
pub(crate) fn at_least(option: &'static str, value: f64, min: f64) -> Result<(), OptionsError> {
    if value >= min && value.is_finite() {
        Ok(())
    } else {
        Err(OptionsError::TooSmall { option, value, min })
    }
}

/// Returns this fraction of `all`, rounded up, and at least 1.
pub(crate) fn part(fraction: f64, all: usize) -> usize {
    // A product like 0.3 · 10 must not be rounded up to 4 because of its last bit.
    let part = (fraction * all as f64 - 1e-9).ceil() as usize;
    part.clamp(1, all.max(1))
}
