//! Comparison of combinations on the cases that both were evaluated on.

use crate::evidence::Evidence;
use crate::ranking::{RankedCombination, bounded_interval, mean_part};
use crate::space::{Cell, Space};
use bakeoff_stats::PairedDifferences;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Mean of the winner minus that of another combination, on the cases that both were evaluated on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedGap {
    /// Mean difference of the objective; positive if the winner is better.
    pub difference: f64,
    /// Its 95 % interval for similar cases: Student's, or the betting interval if all differences are equal. It is not
    /// adjusted for the number of combinations.
    pub interval: [f64; 2],
    /// Number of shared cases.
    pub cases: usize,
}

impl PairedGap {
    /// Whether the interval excludes "no difference".
    pub fn is_distinguishable(&self) -> bool {
        let [low, high] = self.interval;
        low > 0.0 || high < 0.0
    }

    /// Compares the winner with another combination; `None` without shared cases.
    pub(crate) fn new(
        space: &Space,
        evidence: &Evidence,
        winner: usize,
        other: usize,
    ) -> Option<PairedGap> {
        let mut cases: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for datapoint in 0..space.datapoints() {
            let value = |combo: usize| mean_part(evidence, Cell { combo, datapoint });
            if let Some((ours, theirs)) = value(winner).zip(value(other)) {
                let (sum, count) = cases.entry(space.case(datapoint)).or_default();
                (*sum, *count) = (*sum + ours - theirs, *count + 1.0);
            }
        }
        let differences: Vec<f64> = cases.values().map(|(sum, count)| sum / count).collect();
        let (low, high) = evidence.value_range();
        let student = PairedDifferences::new(&differences).filter(|pairs| pairs.error > 0.0);
        let interval = match student {
            Some(pairs) => {
                let found = pairs.interval();
                let (least, most) = (low - high, high - low);
                [found.low.max(least).min(pairs.mean), found.high.min(most).max(pairs.mean)]
            }
            None => bounded_interval(&differences, (low - high, high - low))?,
        };
        let difference = differences.iter().sum::<f64>() / differences.len() as f64;
        Some(PairedGap { difference, interval, cases: differences.len() })
    }
}

/// Whether a combination was evaluated on enough cells for statements about it: half of those of the winner.
///
/// Selectors stop evaluating a combination once it is unlikely to win, and its few cells say little else.
pub(crate) fn is_well_measured(ranked: &RankedCombination, winner: &RankedCombination) -> bool {
    ranked.n > 0 && 2 * ranked.n >= winner.n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{filled, space};

    #[test]
    fn gap_is_paired_on_shared_cases() {
        let space = space(2, 20);
        // The first is better on four of twelve shared cases, and fails on all others.
        let first = (0..20).map(|at| Some(f64::from(at < 12))).collect();
        let second = (0..12).map(|at| Some(f64::from(at % 3 != 0))).collect();
        let evidence = filled(&space, &[first, second]);
        let gap = PairedGap::new(&space, &evidence, 0, 1).unwrap();
        assert_eq!(gap.cases, 12);
        assert!((gap.difference - 1.0 / 3.0).abs() < 1e-12);
        // t(11) = 2.200985, standard error sqrt(8/33/12).
        let half = 2.200_985 * (8.0_f64 / 33.0 / 12.0).sqrt();
        assert!((gap.interval[0] - (1.0 / 3.0 - half)).abs() < 1e-5, "{gap:?}");
        assert!(gap.is_distinguishable());
        assert_eq!(PairedGap::new(&space, &filled(&space, &[vec![], vec![]]), 0, 1), None);
    }

    #[test]
    fn equal_scores_leave_uncertainty() {
        let space = space(2, 30);
        let evidence = filled(&space, &[vec![Some(1.0); 30], vec![Some(1.0); 30]]);
        let gap = PairedGap::new(&space, &evidence, 0, 1).unwrap();
        assert_eq!(gap.difference, 0.0);
        assert!(gap.interval[0] < -0.02 && gap.interval[1] > 0.02, "{gap:?}");
        assert!(!gap.is_distinguishable());
    }
}
