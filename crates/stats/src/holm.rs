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

    proptest! {
        #[test]
        fn adjusted_values_are_between_raw_and_bonferroni(p in prop::collection::vec(0.0_f64..=1.0, 1..20)) {
            for (raw, adjusted) in p.iter().zip(holm(&p)) {
                prop_assert!(*raw <= adjusted);
                prop_assert!(adjusted <= (raw * p.len() as f64).min(1.0).max(p.iter().copied().fold(0.0, f64::max)));
            }
        }
    }
}
