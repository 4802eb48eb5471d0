//! What is wrong with a selector's options.

/// A selector that cannot be made as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Nobody of that name.
    #[error("there is no selector `{name}`; there are {}", super::NAMES.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// An option of another selector.
    #[error("the selector `{selector}` has no option `{option}`")]
    Unused {
        /// Which selector.
        selector: String,
        /// Which option.
        option: &'static str,
    },
    /// A share that is none.
    #[error("fraction is {0}, and must be above 0 and at most 1")]
    Fraction(f64),
    /// A chance that is none, or that leaves nothing to chance.
    #[error("confidence is {0}, and must be at least 0.5 and below 1")]
    Confidence(f64),
    /// A threshold that separates nothing.
    #[error("threshold is {0}, and must lie between 0 and 1")]
    Threshold(f64),
    /// An option that must be larger.
    #[error("{option} is {value}, and must be at least {least}")]
    TooSmall {
        /// Which one.
        option: &'static str,
        /// What it is.
        value: f64,
        /// What it must be at least.
        least: f64,
    },
    /// Ranks and prices for other candidates than there are.
    #[error("the hints do not have one rank and one price for each candidate of each role")]
    Hints,
    /// A price or rank that is no number.
    #[error("a hint for the role `{0}` is not a number")]
    HintNotANumber(String),
    /// Nothing that was proposed can be tried.
    #[error("lm_proposal has nothing to try{}", listed(.notes))]
    NoProposals {
        /// What was wrong with what was proposed.
        notes: Vec<String>,
    },
    /// The model could not be asked.
    #[error("no proposals were made: {0}")]
    NotProposed(String),
}

fn listed(notes: &[String]) -> String {
    notes.iter().map(|note| format!("; {note}")).collect()
}

/// A share in (0, 1].
pub(crate) fn fraction(value: f64) -> Result<f64, OptionsError> {
    if value > 0.0 && value <= 1.0 { Ok(value) } else { Err(OptionsError::Fraction(value)) }
}

/// A chance in [0.5, 1).
pub(crate) fn confidence(value: f64) -> Result<f64, OptionsError> {
    if (0.5..1.0).contains(&value) { Ok(value) } else { Err(OptionsError::Confidence(value)) }
}

/// A number that is at least `least`, and finite.
pub(crate) fn at_least(option: &'static str, value: f64, least: f64) -> Result<(), OptionsError> {
    if value >= least && value.is_finite() {
        Ok(())
    } else {
        Err(OptionsError::TooSmall { option, value, least })
    }
}

/// So many of `all` as the fraction says, rounded up, and at least one.
pub(crate) fn part(fraction: f64, all: usize) -> usize {
    // A product like 0.3 · 10 must not be rounded up to 4 for its last bit.
    let part = (fraction * all as f64 - 1e-9).ceil() as usize;
    part.clamp(1, all.max(1))
}
