//! Result of the closure for one cell.

use crate::combination::Combination;
use crate::evidence::Observation;
use bakeoff_core::NanoDollars;
use std::fmt;
use std::time::Duration;

/// Score of one combination on one datapoint, usually from 0 to 1.
///
/// Cost is unknown unless set. Latency is measured from the call of the closure to the completion of its
/// future unless set.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CellScore {
    /// The score.
    pub value: f64,
    /// Cost at full price, if known.
    pub cost: Option<NanoDollars>,
    /// Amount paid, if it differs from the cost.
    pub paid: Option<NanoDollars>,
    /// Latency, if it differs from the measured one.
    pub latency: Option<Duration>,
}

impl CellScore {
    /// Creates a score of unknown cost.
    pub fn new(value: f64) -> CellScore {
        CellScore { value, cost: None, paid: None, latency: None }
    }

    /// Sets the cost of the evaluation at full price.
    #[must_use]
    pub fn cost(self, cost: NanoDollars) -> CellScore {
        CellScore { cost: Some(cost), ..self }
    }

    /// Sets the amount paid, if it differs from the cost: less for a cached response, more if a judge was
    /// called. Budgets count this amount, comparisons the cost.
    #[must_use]
    pub fn paid(self, paid: NanoDollars) -> CellScore {
        CellScore { paid: Some(paid), ..self }
    }

    /// Sets the latency, for example without time spent waiting for a rate limit.
    #[must_use]
    pub fn latency(self, latency: Duration) -> CellScore {
        CellScore { latency: Some(latency), ..self }
    }

    pub(super) fn observation(self, measured: Duration) -> Observation {
        Observation {
            score: Some(self.value),
            cost: self.cost,
            paid: self.paid.or(self.cost).unwrap_or_default(),
            latency: self.latency.unwrap_or(measured).as_secs_f64(),
        }
    }
}

impl From<f64> for CellScore {
    fn from(value: f64) -> CellScore {
        CellScore::new(value)
    }
}

/// A pass is 1, a failure 0.
impl From<bool> for CellScore {
    fn from(passed: bool) -> CellScore {
        CellScore::new(f64::from(passed))
    }
}

/// Error of one cell: missing data for the search, never a score of 0.
///
/// Any error type converts into it with `?`, and so does text. It does not implement
/// [`std::error::Error`] itself, which that conversion rules out.
pub struct CellError {
    source: Box<dyn std::error::Error + Send + Sync>,
    cost: Option<NanoDollars>,
    is_fatal: bool,
}

impl CellError {
    /// Creates an error of unknown cost.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> CellError {
        CellError { source: source.into(), cost: None, is_fatal: false }
    }

    /// Sets the cost of the failed evaluation.
    #[must_use]
    pub fn cost(self, cost: NanoDollars) -> CellError {
        CellError { cost: Some(cost), ..self }
    }

    /// Ends the search with the best combination so far, for example because an account is out of quota.
    #[must_use]
    pub fn fatal(self) -> CellError {
        CellError { is_fatal: true, ..self }
    }

    /// Whether the error ends the search.
    pub fn is_fatal(&self) -> bool {
        self.is_fatal
    }

    /// Returns the cause.
    pub fn source(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self.source.as_ref()
    }

    pub(super) fn observation(&self, measured: Duration) -> Observation {
        let latency = measured.as_secs_f64();
        let paid = self.cost.unwrap_or_default();
        Observation { score: None, cost: self.cost, paid, latency }
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for CellError {
    fn from(source: E) -> CellError {
        CellError::new(source)
    }
}

impl fmt::Display for CellError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, formatter)
    }
}

impl fmt::Debug for CellError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, formatter)
    }
}

/// A cell that errored.
#[derive(Debug)]
#[non_exhaustive]
pub struct CellFailure {
    /// Combination of the cell.
    pub combination: Combination,
    /// Number of its datapoint.
    pub datapoint: usize,
    /// The error.
    pub error: CellError,
}

impl CellFailure {
    /// Creates a failure.
    pub fn new(
        combination: Combination,
        datapoint: usize,
        error: impl Into<CellError>,
    ) -> CellFailure {
        CellFailure { combination, datapoint, error: error.into() }
    }
}

impl fmt::Display for CellFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CellFailure { combination, datapoint, error } = self;
        write!(formatter, "{combination}, datapoint {datapoint}: {error}")
    }
}
