//! Bootstrap over whole cases, for statistics without a formula.

use crate::rate::Interval;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Minimum number of cases; with fewer, the percentiles are too narrow.
pub const MIN_BOOTSTRAP_CASES: usize = 20;

const DRAWS: usize = 10_000;

/// Returns the percentile bootstrap interval (Efron 1979) of a statistic over `cases` cases: 10 000 seeded
/// draws of whole cases, with replacement.
///
/// `statistic` gets the indices of the drawn cases. Absent with fewer than
/// [`MIN_BOOTSTRAP_CASES`], and if a draw has no value (NaN). Not for comparing two targets: it rejects
/// equality too often.
pub fn bootstrap(
    cases: usize,
    seed: u64,
    statistic: impl FnMut(&[usize]) -> f64,
) -> Option<Interval> {
    if cases < MIN_BOOTSTRAP_CASES { None } else { percentiles(cases, seed, statistic) }
}

fn percentiles(
    cases: usize,
    seed: u64,
    mut statistic: impl FnMut(&[usize]) -> f64,
) -> Option<Interval> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = vec![0; cases];
    let mut values = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        drawn.fill_with(|| rng.random_range(0..cases));
        let value = statistic(&drawn);
        if value.is_nan() {
            return None;
        }
        values.push(value);
    }
    values.sort_unstable_by(f64::total_cmp);
    let rank = |permille: usize| values.get(DRAWS * permille / 1000 - 1).copied();
    Some(Interval { low: rank(25)?, high: rank(975)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values: the limit of many draws by convolution; tolerance: one step of the mean.
    #[test]
    fn agrees_with_the_ideal_bootstrap() {
        let a = [4, 4, 3, 4, 2, 4, 1, 3];
        let b = [4, 3, 3, 2, 2, 3, 0, 3];
        let difference: Vec<i32> = a.iter().zip(b).map(|(a, b)| b - a).collect();
        let table = [
            (&a[..], 0.59375, 0.93750),
            (&b[..], 0.40625, 0.78125),
            (&difference[..], -0.28125, -0.03125),
        ];
        for (passed, low, high) in table {
            let mean = |drawn: &[usize]| {
                f64::from(drawn.iter().map(|&case| passed[case]).sum::<i32>()) / 32.0
            };
            let interval = percentiles(8, 1, mean).unwrap();
            assert!((interval.low - low).abs() <= 0.03125, "{interval:?}");
            assert!((interval.high - high).abs() <= 0.03125, "{interval:?}");
        }
    }

    #[test]
    fn requires_twenty_cases_and_is_deterministic_by_seed() {
        let first = |drawn: &[usize]| drawn.iter().sum::<usize>() as f64;
        assert_eq!(bootstrap(19, 1, first), None);
        assert!(bootstrap(20, 1, first).is_some());
        assert_eq!(bootstrap(20, 1, first), bootstrap(20, 1, first));
        assert_eq!(bootstrap(20, 1, |_| f64::NAN), None);
    }
}
