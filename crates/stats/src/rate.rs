//! The pass rate of one case.

use crate::Z;

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Wilson's score interval (1927) for `passed` of `counted`.
///
/// With nothing counted nothing is known: `[0, 1]`.
pub fn wilson(passed: u64, counted: u64) -> Interval {
    if counted == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    wilson_at(passed as f64 / counted as f64, counted as f64)
}

/// Wilson's formula at any rate and any effective number of observations.
pub(crate) fn wilson_at(rate: f64, size: f64) -> Interval {
    let spread = Z * Z / size;
    let centre = (rate + spread / 2.0) / (1.0 + spread);
    let half = Z / (1.0 + spread) * (rate * (1.0 - rate) / size + spread / (4.0 * size)).sqrt();
    Interval {
        // The formula gives these ends exactly; floating point only nearly.
        low: if rate == 0.0 { 0.0 } else { centre - half },
        high: if rate == 1.0 { 1.0 } else { centre + half },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values: statsmodels 0.15, `proportion_confint(method="wilson")`.
    #[test]
    fn wilson_agrees_with_statsmodels() {
        let table = [
            (0, 1, 0.0, 0.793451),
            (0, 3, 0.0, 0.561497),
            (2, 3, 0.207660, 0.938508),
            (3, 5, 0.230724, 0.882379),
            (4, 5, 0.375535, 0.963776),
            (8, 10, 0.490162, 0.943318),
            (10, 10, 0.722467, 1.0),
            (1, 20, 0.008881, 0.236131),
            (16, 20, 0.583983, 0.919342),
            (40, 50, 0.669629, 0.887562),
            (70, 100, 0.604151, 0.781051),
            (999, 1000, 0.994357, 0.999823),
        ];
        for (passed, counted, low, high) in table {
            let interval = wilson(passed, counted);
            assert!((interval.low - low).abs() < 1e-6, "{passed}/{counted}: {interval:?}");
            assert!((interval.high - high).abs() < 1e-6, "{passed}/{counted}: {interval:?}");
        }
        assert_eq!(wilson(0, 0), Interval { low: 0.0, high: 1.0 });
    }
}
