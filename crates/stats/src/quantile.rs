//! Quantiles of latencies, without assumptions about their distribution.

use crate::flake::binomial_reaches;

/// An observed quantile with the observations that bound it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// The quantile, which is an observation and not interpolated.
    pub value: f64,
    /// Lower end of its 95 % interval; absent with too few observations.
    pub low: Option<f64>,
    /// Upper end; absent with too few observations, which is common for high quantiles.
    pub high: Option<f64>,
}

/// Returns the `share` quantile of `values` with its interval by order statistics (David & Nagaraja 2003).
///
/// Absent without values, if one is not a number, or for a share outside 0..1.
pub fn quantile(values: &[f64], share: f64) -> Option<Quantile> {
    let inside = (0.0..=1.0).contains(&share);
    if values.is_empty() || !inside || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = values.len() as u64;
    let at = |rank: u64| sorted.get(usize::try_from(rank).ok()?.checked_sub(1)?).copied();
    let (low, high) = ranks(count, share);
    Some(Quantile {
        value: at(quantile_rank(count, share))?,
        low: low.and_then(at),
        high: high.and_then(at),
    })
}

/// Returns the rank, from 1, of the `share` quantile among `count` values in ascending order. Nothing is
/// interpolated.
pub fn quantile_rank(count: u64, share: f64) -> u64 {
    // 0.07 · 100 is slightly above 7 in floating point.
    (share * count as f64 - 1e-9).ceil().max(1.0) as u64
}

/// Returns the ranks, from 1, whose values bound the quantile.
fn ranks(count: u64, share: f64) -> (Option<u64>, Option<u64>) {
    const TAIL: f64 = 0.025;
    // P(Bin(count, share) >= rank) falls with the rank, so both ends are found by bisection.
    let reaches = |rank: u64| binomial_reaches(rank, count, share);
    let low = first(count, |rank| 1.0 - reaches(rank) > TAIL).saturating_sub(1);
    let high = first(count, |rank| reaches(rank) <= TAIL);
    ((low >= 1).then_some(low), (high <= count).then_some(high))
}

/// Returns the first of 1..=`count` with a property that all later ones share; `count + 1` if none has it.
fn first(count: u64, has: impl Fn(u64) -> bool) -> u64 {
    let (mut without, mut with) = (0, count + 1);
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        if has(middle) { with = middle } else { without = middle }
    }
    with
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference values: SciPy 1.17, `binom.cdf` and `binom.sf`.
    #[test]
    fn ranks_agree_with_scipy() {
        let table = [
            (0.5, 5, None, None),
            (0.5, 6, Some(1), Some(6)),
            (0.5, 10, Some(2), Some(9)),
            (0.5, 20, Some(6), Some(15)),
            (0.5, 100, Some(40), Some(61)),
            (0.95, 20, Some(17), None),
            (0.95, 71, Some(63), None),
            (0.95, 72, Some(64), Some(72)),
            (0.95, 100, Some(90), Some(100)),
        ];
        for (share, count, low, high) in table {
            assert_eq!(ranks(count, share), (low, high), "{share} of {count}");
        }
    }

    #[test]
    fn quantiles_are_observations() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let ninety_fifth = quantile(&values, 0.95).unwrap();
        assert_eq!(ninety_fifth, Quantile { value: 95.0, low: Some(90.0), high: Some(100.0) });
        assert_eq!(quantile(&values, 0.07).unwrap().value, 7.0);
        assert_eq!(quantile(&values, 0.071).unwrap().value, 8.0);
        assert_eq!(quantile(&values, 0.0).unwrap().value, 1.0);
        assert_eq!(quantile(&values, 1.0).unwrap().value, 100.0);
        assert_eq!(quantile(&[3.0], 0.5).unwrap(), Quantile { value: 3.0, low: None, high: None });
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[f64::NAN], 0.5), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
    }

    proptest! {
        /// The ends contain the quantile, and the ranks are as close as the two tails allow.
        #[test]
        fn ends_contain_the_quantile(values in prop::collection::vec(0.0_f64..1e6, 1..300), share in 0.01_f64..0.99) {
            let found = quantile(&values, share).unwrap();
            prop_assert!(found.low.is_none_or(|low| low <= found.value));
            prop_assert!(found.high.is_none_or(|high| high >= found.value));
            let count = values.len() as u64;
            let (low, high) = ranks(count, share);
            let below = |rank| 1.0 - binomial_reaches(rank, count, share);
            prop_assert!(low.is_none_or(|low| below(low) <= 0.025));
            prop_assert!(below(low.unwrap_or(0) + 1) > 0.025);
            prop_assert!(high.is_none_or(|high| binomial_reaches(high, count, share) <= 0.025));
            prop_assert!(binomial_reaches(high.unwrap_or(count + 1) - 1, count, share) > 0.025);
        }
    }
}
