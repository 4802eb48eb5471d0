//! Adjustment for multiple comparisons.

/// Returns Holm's adjusted p-values (1979), in the order given. Rejecting those of at most alpha limits the
/// probability of any false rejection to alpha.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        largest = largest.max((remaining * p_values[index]).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

/// Returns the level at which Holm's method compares each p-value, in the order given.
///
/// The smallest p-value is compared with `alpha` divided by their number, the next with `alpha` divided by
/// one less, and so on until one exceeds its level; that level holds for all remaining ones. A hypothesis is
/// rejected exactly if its p-value is at most its level, so intervals at these levels agree with the adjusted
/// p-values. Each interval has at least the confidence of an unadjusted one.
pub fn holm_levels(p_values: &[f64], alpha: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut levels = vec![alpha; p_values.len()];
    let mut remaining = p_values.len();
    for index in order {
        let level = alpha / remaining.max(1) as f64;
        levels[index] = level;
        if p_values[index] <= level {
            remaining -= 1;
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;

    /// Reference values: statsmodels 0.15, `multipletests(method="holm")`.
    #[test]
    fn agrees_with_statsmodels() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (actual, expected) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            near(actual, expected);
        }
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn levels_rise_until_a_p_value_exceeds_its_level() {
        let levels = holm_levels(&[0.01, 0.04, 0.03, 0.005], 0.05);
        for (actual, expected) in levels.into_iter().zip([0.05 / 3.0, 0.025, 0.025, 0.0125]) {
            near(actual, expected);
        }
        assert_eq!(holm_levels(&[0.04], 0.05), [0.05]);
        assert_eq!(holm_levels(&[0.01, 0.02, 0.04], 0.05), [0.05 / 3.0, 0.025, 0.05]);
        assert!(holm_levels(&[], 0.05).is_empty());
    }

    proptest! {
        #[test]
        fn levels_agree_with_adjusted_values(
            p in prop::collection::vec(prop_oneof![0.0_f64..=1.0, 0.0_f64..=0.02], 1..20),
            alpha in 0.01_f64..0.2,
        ) {
            for ((raw, adjusted), level) in p.iter().zip(holm(&p)).zip(holm_levels(&p, alpha)) {
                prop_assert_eq!(adjusted <= alpha, *raw <= level);
            }
        }

        #[test]
        fn adjusted_values_are_between_raw_and_bonferroni(p in prop::collection::vec(0.0_f64..=1.0, 1..20)) {
            for (raw, adjusted) in p.iter().zip(holm(&p)) {
                prop_assert!(*raw <= adjusted);
                prop_assert!(adjusted <= (raw * p.len() as f64).min(1.0).max(p.iter().copied().fold(0.0, f64::max)));
            }
        }
    }
}
