//! Agreement between raters, such as a judge and human labels.

use crate::rate::{Interval, wilson};
use std::collections::BTreeMap;

/// Counts of the labels of two raters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgreementTable {
    /// Both passed.
    pub pass_pass: u64,
    /// Only the first passed.
    pub pass_fail: u64,
    /// Only the second passed.
    pub fail_pass: u64,
    /// Both failed.
    pub fail_fail: u64,
}

/// Cohen's kappa with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kappa {
    /// 1 is perfect agreement, 0 is agreement by chance.
    pub value: f64,
    /// Large-sample standard error.
    pub error: f64,
}

impl AgreementTable {
    fn total(self) -> u64 {
        self.pass_pass + self.pass_fail + self.fail_pass + self.fail_fail
    }

    /// Returns the share of equal labels with Wilson's interval (1927); absent for an empty table.
    ///
    /// It is high by chance if one label dominates: always show [`kappa`](AgreementTable::kappa) beside it.
    pub fn agreement(self) -> Option<(f64, Interval)> {
        let equal = self.pass_pass + self.fail_fail;
        let total = self.total();
        (total > 0).then(|| (equal as f64 / total as f64, wilson(equal, total)))
    }

    /// Returns the agreement beyond chance (Cohen 1960), with the standard error of Fleiss, Cohen and Everitt
    /// (1969). Absent when both gave one and the same label throughout.
    pub fn kappa(self) -> Option<Kappa> {
        let n = self.total() as f64;
        let cells = [[self.pass_pass, self.pass_fail], [self.fail_pass, self.fail_fail]]
            .map(|row| row.map(|count| count as f64 / n));
        let first = cells.map(|row| row.iter().sum::<f64>());
        let second = [cells[0][0] + cells[1][0], cells[0][1] + cells[1][1]];
        let observed = cells[0][0] + cells[1][1];
        let chance = first[0] * second[0] + first[1] * second[1];
        if self.total() == 0 || chance >= 1.0 {
            return None;
        }
        let value = (observed - chance) / (1.0 - chance);
        let rest = 1.0 - value;
        let equal: f64 =
            (0..2).map(|i| cells[i][i] * (1.0 - (first[i] + second[i]) * rest).powi(2)).sum();
        let unequal: f64 = [(0, 1), (1, 0)]
            .iter()
            .map(|&(i, j)| cells[i][j] * (second[i] + first[j]).powi(2))
            .sum();
        let square = equal + rest * rest * unequal - (value - chance * rest).powi(2);
        Some(Kappa { value, error: square.max(0.0).sqrt() / (n.sqrt() * (1.0 - chance)) })
    }

    /// Returns Krippendorff's alpha of the same labels; see [`krippendorff`].
    pub fn krippendorff(self) -> Option<f64> {
        let cells = [
            (self.pass_pass, [1, 1]),
            (self.pass_fail, [1, 0]),
            (self.fail_pass, [0, 1]),
            (self.fail_fail, [0, 0]),
        ];
        let mut coincidences = Coincidences::default();
        for (count, labels) in &cells {
            coincidences.add(labels, *count as f64);
        }
        coincidences.alpha()
    }
}

/// Returns Krippendorff's alpha for nominal labels (2011), for several raters with gaps.
///
/// Each unit holds its labels in any order; units with fewer than two are ignored. Absent if nothing can
/// be compared or only one label occurs.
pub fn krippendorff<L: Ord, U: AsRef<[L]>>(units: impl IntoIterator<Item = U>) -> Option<f64> {
    // Only equality of labels matters, so each gets a number.
    let units: Vec<U> = units.into_iter().collect();
    let mut numbers: BTreeMap<&L, usize> = BTreeMap::new();
    for label in units.iter().flat_map(|unit| unit.as_ref()) {
        let next = numbers.len();
        numbers.entry(label).or_insert(next);
    }
    let mut coincidences = Coincidences::default();
    for unit in &units {
        let labels: Vec<usize> =
            unit.as_ref().iter().filter_map(|label| numbers.get(label).copied()).collect();
        coincidences.add(&labels, 1.0);
    }
    coincidences.alpha()
}

/// Counts of label pairs within units.
#[derive(Default)]
struct Coincidences {
    /// Occurrences of each label in comparable units.
    counts: BTreeMap<usize, f64>,
    /// Weight of unequal pairs, in both orders.
    unequal: f64,
}

impl Coincidences {
    /// Adds `times` units with these labels.
    fn add(&mut self, labels: &[usize], times: f64) {
        if labels.len() < 2 {
            return;
        }
        let size = labels.len() as f64;
        let mut within: BTreeMap<usize, f64> = BTreeMap::new();
        for label in labels {
            *within.entry(*label).or_default() += 1.0;
        }
        let equal: f64 = within.values().map(|count| count * count).sum();
        self.unequal += times * (size * size - equal) / (size - 1.0);
        for (label, count) in within {
            *self.counts.entry(label).or_default() += times * count;
        }
    }

    fn alpha(&self) -> Option<f64> {
        let total: f64 = self.counts.values().sum();
        let equal: f64 = self.counts.values().map(|count| count * count).sum();
        let expected = total * total - equal;
        (expected > 0.0).then(|| 1.0 - (total - 1.0) * self.unequal / expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;

    fn table([pass_pass, pass_fail, fail_pass, fail_fail]: [u64; 4]) -> AgreementTable {
        AgreementTable { pass_pass, pass_fail, fail_pass, fail_fail }
    }

    /// Reference values: statsmodels 0.15, `cohens_kappa`; alpha from exact fractions.
    #[test]
    fn agrees_with_statsmodels() {
        let rows = [
            ([45, 5, 8, 42], 0.87, 0.740000, 0.067140, 0.741067),
            ([80, 5, 10, 5], 0.85, 0.318182, 0.133457, 0.317714),
        ];
        for (cells, agreement, kappa, error, alpha) in rows {
            let table = table(cells);
            near(table.agreement().unwrap().0, agreement);
            near(table.kappa().unwrap().value, kappa);
            near(table.kappa().unwrap().error, error);
            near(table.krippendorff().unwrap(), alpha);
        }
    }

    /// Krippendorff's own example (2011): four observers, twelve units, gaps.
    #[test]
    fn agrees_with_krippendorff() {
        let observers = [
            "1 2 3 3 2 1 4 1 2 . . .",
            "1 2 3 3 2 2 4 1 2 5 . 3",
            ". 3 3 3 2 3 4 2 2 5 1 .",
            "1 2 3 3 2 4 4 1 2 5 1 .",
        ];
        let rows: Vec<Vec<&str>> =
            observers.iter().map(|row| row.split_whitespace().collect()).collect();
        let units = (0..12).map(|unit| {
            rows.iter().map(|row| row[unit]).filter(|&label| label != ".").collect::<Vec<_>>()
        });
        near(krippendorff::<&str, _>(units).unwrap(), 0.743421);
    }

    #[test]
    fn one_label_throughout_is_undefined() {
        let same = table([7, 0, 0, 0]);
        assert_eq!((same.kappa(), same.krippendorff()), (None, None));
        assert_eq!(same.agreement().unwrap().0, 1.0);
        let empty = table([0; 4]);
        assert_eq!((empty.agreement(), empty.kappa(), empty.krippendorff()), (None, None, None));
        assert_eq!(krippendorff::<u8, Vec<u8>>([vec![1], vec![2], vec![]]), None);
        let perfect = table([5, 0, 0, 5]);
        assert_eq!(perfect.kappa(), Some(Kappa { value: 1.0, error: 0.0 }));
        assert_eq!(perfect.krippendorff(), Some(1.0));
    }

    proptest! {
        /// A table and the same labels as units give the same alpha; swapping the raters changes nothing.
        #[test]
        fn tables_agree_with_units(cells in [0_u64..12, 0_u64..12, 0_u64..12, 0_u64..12]) {
            let one = table(cells);
            let swapped = table([cells[0], cells[2], cells[1], cells[3]]);
            let labels = [["p", "p"], ["p", "f"], ["f", "p"], ["f", "f"]];
            let units = cells.iter().zip(labels).flat_map(|(&count, pair)| vec![pair; count as usize]);
            let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-9,
                (a, b) => a == b,
            };
            prop_assert!(close(krippendorff(units), one.krippendorff()));
            prop_assert!(close(one.kappa().map(|k| k.value), swapped.kappa().map(|k| k.value)));
            prop_assert!(close(one.kappa().map(|k| k.error), swapped.kappa().map(|k| k.error)));
            prop_assert!(one.kappa().is_none_or(|kappa| kappa.value <= 1.0 && kappa.error.is_finite()));
        }
    }
}
