//! Bradley–Terry strengths from pairwise results.

/// Maximum number of iterations. With smoothing a few dozen are enough; without it, the strength of an
/// item that never lost grows without bound.
const MAX_STEPS: usize = 10_000;

/// Returns the maximum-likelihood strengths of the model of Bradley and Terry (1952), in which `i` beats
/// `j` with probability `p[i] / (p[i] + p[j])`. They sum to 1.
///
/// The algorithm is Hunter's MM iteration (2004). `wins[i][j]` is the number of wins of `i` against `j`; a
/// tie counts one half for both. `smoothing` is added to the wins of every pair in both directions: 0.5
/// keeps the strength of an item that never lost finite, and makes items comparable that never met.
/// Without smoothing, an item without games has the mean strength.
///
/// Absent if the table is not square, or a number is negative or not finite.
pub fn bradley_terry(wins: &[Vec<f64>], smoothing: f64) -> Option<Vec<f64>> {
    let count = wins.len();
    let is_number = |number: f64| number.is_finite() && number >= 0.0;
    let is_table = wins.iter().all(|row| row.len() == count);
    if !is_table || !wins.iter().flatten().copied().chain([smoothing]).all(is_number) {
        return None;
    }
    let won = |i: usize, j: usize| if i == j { 0.0 } else { wins[i][j] + smoothing };
    let total: Vec<f64> = (0..count).map(|i| (0..count).map(|j| won(i, j)).sum()).collect();
    let has_games: Vec<bool> =
        (0..count).map(|i| (0..count).any(|j| won(i, j) + won(j, i) > 0.0)).collect();
    let mean = 1.0 / count as f64;
    let mut strengths = vec![mean; count];
    for _ in 0..MAX_STEPS {
        let mut next: Vec<f64> = (0..count)
            .map(|i| {
                let rates = (0..count).map(|j| {
                    let games = won(i, j) + won(j, i);
                    let sum = strengths[i] + strengths[j];
                    if games > 0.0 && sum > 0.0 { games / sum } else { 0.0 }
                });
                let rate: f64 = rates.sum();
                if rate > 0.0 { total[i] / rate } else { strengths[i] }
            })
            .collect();
        // Items without games keep the mean strength; the others share the rest.
        let share = has_games.iter().filter(|has| **has).count() as f64 * mean;
        let sum: f64 = next.iter().zip(&has_games).filter(|(_, has)| **has).map(|(p, _)| p).sum();
        for (strength, has) in next.iter_mut().zip(&has_games) {
            *strength = if *has { *strength / sum * share } else { mean };
        }
        let change = |(old, new): (&f64, &f64)| (old - new).abs();
        let largest = strengths.iter().zip(&next).map(change).fold(0.0, f64::max);
        strengths = next;
        if largest < 1e-14 {
            break;
        }
    }
    Some(strengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;
    use proptest::prelude::*;

    fn table<const N: usize>(rows: [[f64; N]; N]) -> Vec<Vec<f64>> {
        rows.iter().map(|row| row.to_vec()).collect()
    }

    /// Reference values: the log-likelihood minimised by SciPy 1.17, `minimize(method="BFGS")`.
    #[test]
    fn agrees_with_scipy() {
        let four = table([
            [0.0, 730.0, 320.0, 284.0],
            [33.0, 0.0, 68.0, 17.0],
            [813.0, 498.0, 0.0, 142.0],
            [421.0, 213.0, 276.0, 0.0],
        ]);
        let three = table([[0.0, 3.0, 4.0], [1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]);
        let chain = table([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]);
        let apart = table([
            [0.0, 2.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0],
            [0.0, 0.0, 0.0, 0.0],
        ]);
        let rows = [
            (four, 0.0, vec![0.205325, 0.022013, 0.362490, 0.410172]),
            (three, 0.0, vec![0.775222, 0.150575, 0.074203]),
            (chain, 0.5, vec![0.591811, 0.277794, 0.130395]),
            (apart, 0.5, vec![0.388702, 0.131282, 0.321091, 0.158925]),
        ];
        for (wins, smoothing, expected) in rows {
            let strengths = bradley_terry(&wins, smoothing).unwrap();
            for (actual, expected) in strengths.iter().zip(expected) {
                near(*actual, expected);
            }
        }
    }

    #[test]
    fn circular_wins_give_equal_strengths() {
        let circular = table([[0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]]);
        for strength in bradley_terry(&circular, 0.0).unwrap() {
            near(strength, 1.0 / 3.0);
        }
    }

    #[test]
    fn little_or_no_data_gives_finite_strengths() {
        assert_eq!(bradley_terry(&[], 0.5), Some(vec![]));
        assert_eq!(bradley_terry(&table([[0.0]]), 0.5), Some(vec![1.0]));
        assert_eq!(bradley_terry(&table([[0.0; 2]; 2]), 0.0), Some(vec![0.5, 0.5]));
        let without_games = table([[0.0, 3.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]);
        let strengths = bradley_terry(&without_games, 0.0).unwrap();
        for (actual, expected) in strengths.iter().zip([0.5, 1.0 / 6.0, 1.0 / 3.0]) {
            near(*actual, expected);
        }
        let never_lost = bradley_terry(&table([[0.0, 3.0], [0.0, 0.0]]), 0.0).unwrap();
        assert_eq!(never_lost, [1.0, 0.0]);
    }

    #[test]
    fn invalid_tables_have_no_strengths() {
        assert_eq!(bradley_terry(&[vec![0.0, 1.0]], 0.5), None);
        assert_eq!(bradley_terry(&table([[0.0, -1.0], [0.0, 0.0]]), 0.5), None);
        assert_eq!(bradley_terry(&table([[0.0, f64::NAN], [0.0, 0.0]]), 0.5), None);
        assert_eq!(bradley_terry(&table([[0.0; 2]; 2]), f64::INFINITY), None);
    }

    proptest! {
        /// Strengths sum to 1 and do not depend on the order of the items; of two items, the one with more
        /// wins is stronger.
        #[test]
        fn strengths_are_shares(
            rows in prop::collection::vec(prop::collection::vec(0_u8..9, 5), 5),
            smoothing in 0.0_f64..2.0,
        ) {
            let wins: Vec<Vec<f64>> =
                rows.iter().map(|row| row.iter().copied().map(f64::from).collect()).collect();
            let strengths = bradley_terry(&wins, smoothing).unwrap();
            prop_assert!((strengths.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(strengths.iter().all(|strength| (0.0..=1.0).contains(strength)));
            let reversed: Vec<Vec<f64>> =
                wins.iter().rev().map(|row| row.iter().rev().copied().collect()).collect();
            let back = bradley_terry(&reversed, smoothing + 0.1).unwrap();
            let same = bradley_terry(&wins, smoothing + 0.1).unwrap();
            for (one, other) in same.iter().zip(back.iter().rev()) {
                prop_assert!((one - other).abs() < 1e-6);
            }
            let pair = vec![vec![0.0, wins[0][1]], vec![wins[1][0], 0.0]];
            let two = bradley_terry(&pair, 0.5).unwrap();
            let share = (wins[0][1] + 0.5) / (wins[0][1] + wins[1][0] + 1.0);
            prop_assert!((two[0] - share).abs() < 1e-9);
        }
    }
}
