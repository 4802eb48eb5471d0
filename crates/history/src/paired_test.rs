//! Test of the differences between two targets over the same cases, and the interval that agrees with it.

use bakeoff_core::{Finding, Interval};
use bakeoff_stats::{SignFlip, mcnemar, mcnemar_interval};

/// Differences of cases, prepared for a test.
pub(crate) struct PairedTest {
    pub(crate) differences: Vec<f64>,
    flips: SignFlip,
    /// Number of positive differences.
    pub(crate) gained: u64,
    /// Number of negative differences.
    pub(crate) lost: u64,
    /// Whether each difference is -1, 0 or 1, as with one trial per case.
    pub(crate) is_binary: bool,
}

impl PairedTest {
    /// Prepares the test; `None` without cases.
    pub(crate) fn new(differences: Vec<f64>, seed: u64) -> Option<PairedTest> {
        let flips = SignFlip::new(&differences, seed)?;
        let count = |is_counted: fn(&f64) -> bool| {
            differences.iter().filter(|difference| is_counted(difference)).count() as u64
        };
        Some(PairedTest {
            gained: count(|difference| *difference > 0.0),
            lost: count(|difference| *difference < 0.0),
            is_binary: differences.iter().all(|difference| [-1.0, 0.0, 1.0].contains(difference)),
            flips,
            differences,
        })
    }

    /// Returns the mean difference.
    pub(crate) fn mean(&self) -> f64 {
        self.flips.mean()
    }

    pub(crate) fn p_value(&self) -> f64 {
        if self.is_binary { mcnemar(self.gained, self.lost) } else { self.flips.p_value() }
    }

    pub(crate) fn name(&self) -> &'static str {
        match (self.is_binary, self.flips.is_exact()) {
            (true, _) => "McNemar, exact",
            (false, true) => "exact sign-flip test",
            (false, false) => "sign-flip test with 9,999 random flips",
        }
    }

    /// Returns all differences that the test does not reject at that level.
    pub(crate) fn interval(&self, level: f64) -> Interval {
        let found = if self.is_binary {
            Some(mcnemar_interval(self.gained, self.lost, self.differences.len() as u64, level))
        } else {
            self.flips.interval(level)
        };
        // Rates and scores differ by at most 1. With very few cases, the test rejects no difference.
        found.map_or(Interval { low: -1.0, high: 1.0 }, |found| Interval {
            low: found.low.max(-1.0),
            high: found.high.min(1.0),
        })
    }

    pub(crate) fn finding(&self, level: f64) -> Finding {
        match self.mean() {
            _ if self.p_value() > level => Finding::NoDifference,
            difference if difference < 0.0 => Finding::Worse,
            difference if difference > 0.0 => Finding::Better,
            _ => Finding::NoDifference,
        }
    }
}
