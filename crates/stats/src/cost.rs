//! Ratio of the costs of two targets.

use crate::bootstrap::bootstrap;
use crate::mean::mean_value;
use crate::rate::Interval;

/// A ratio, second over first, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostRatio {
    /// The ratio.
    pub value: f64,
    /// Its 95 % interval; absent with too few cases.
    pub interval: Option<Interval>,
}

/// Returns the geometric mean of the cost ratios of the cases (Fleming & Wallace 1986), with the t interval
/// of their logarithms. It describes a typical case.
///
/// Absent without cases, or if a cost is not positive; use the ratio of totals then.
pub fn geometric_ratio(costs: &[(f64, f64)]) -> Option<CostRatio> {
    let is_positive = |cost: f64| cost > 0.0 && cost.is_finite();
    if costs.is_empty()
        || !costs.iter().all(|&(first, second)| is_positive(first) && is_positive(second))
    {
        return None;
    }
    let logs: Vec<f64> = costs.iter().map(|(first, second)| (second / first).ln()).collect();
    let interval = mean_value(&logs).map(|estimate| estimate.interval);
    Some(CostRatio {
        value: (logs.iter().sum::<f64>() / logs.len() as f64).exp(),
        interval: interval.map(|logs| Interval { low: logs.low.exp(), high: logs.high.exp() }),
    })
}

/// Returns the ratio of the total costs. Expensive cases weigh more.
///
/// Its interval resamples whole cases (Efron 1979). Absent if the first target cost nothing.
pub fn total_ratio(costs: &[(f64, f64)], seed: u64) -> Option<CostRatio> {
    let value = ratio(costs.iter().copied());
    let drawn = |cases: &[usize]| ratio(cases.iter().filter_map(|&case| costs.get(case).copied()));
    value.is_finite().then(|| CostRatio { value, interval: bootstrap(costs.len(), seed, drawn) })
}

fn ratio(costs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (first, second) = costs.fold((0.0, 0.0), |(a, b), (first, second)| (a + first, b + second));
    second / first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;

    const COSTS: [(f64, f64); 6] =
        [(1.2, 1.0), (0.8, 0.9), (2.0, 1.5), (1.1, 1.0), (0.5, 0.4), (3.0, 2.1)];

    /// Reference values: SciPy 1.17.
    #[test]
    fn agrees_with_scipy() {
        let geometric = geometric_ratio(&COSTS).unwrap();
        near(geometric.value, 0.842632);
        near(geometric.interval.unwrap().low, 0.706899);
        near(geometric.interval.unwrap().high, 1.004428);
        let totals = total_ratio(&COSTS, 0).unwrap();
        near(totals.value, 0.802326);
        assert_eq!(totals.interval, None);
    }

    #[test]
    fn free_cases_have_only_a_ratio_of_totals() {
        let costs = [(1.0, 0.0), (1.0, 1.0)];
        assert_eq!(geometric_ratio(&costs), None);
        assert_eq!(total_ratio(&costs, 0).unwrap().value, 0.5);
        assert_eq!(total_ratio(&[(0.0, 1.0)], 0), None);
        assert_eq!(total_ratio(&[], 0), None);
        assert_eq!(geometric_ratio(&[]), None);
        assert_eq!(geometric_ratio(&[(1.0, 2.0)]).unwrap().interval, None);
    }

    #[test]
    fn totals_of_many_cases_have_an_interval() {
        let costs: Vec<(f64, f64)> = COSTS.iter().copied().cycle().take(60).collect();
        let totals = total_ratio(&costs, 1).unwrap();
        let interval = totals.interval.unwrap();
        // The delta method gives .802326 ± 1.96·.0159 for ten copies of the example.
        assert!(
            (interval.low - 0.7712).abs() < 0.004 && (interval.high - 0.8335).abs() < 0.004,
            "{interval:?}"
        );
        assert_eq!(total_ratio(&costs, 1), total_ratio(&costs, 1));
    }

    proptest! {
        #[test]
        fn swapping_targets_inverts(costs in prop::collection::vec((0.01_f64..10.0, 0.01_f64..10.0), 2..19)) {
            let swapped: Vec<_> = costs.iter().map(|&(first, second)| (second, first)).collect();
            let (one, other) = (geometric_ratio(&costs).unwrap(), geometric_ratio(&swapped).unwrap());
            prop_assert!((one.value * other.value - 1.0).abs() < 1e-9);
            prop_assert!((one.interval.unwrap().low * other.interval.unwrap().high - 1.0).abs() < 1e-9);
            prop_assert!(one.interval.unwrap().contains(one.value));
        }
    }
}
