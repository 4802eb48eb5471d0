//! Search for the parameters of a limit that explain most outcomes.

use super::threshold::Threshold;
use std::collections::BTreeMap;

/// Number of neighbouring values that are tried together first.
const CELL_SIZE: usize = 16;

/// Returns values from `range` in equal ratios.
pub(super) fn grid(range: (f64, f64), step: f64) -> Vec<f64> {
    let steps = ((range.1 / range.0).ln() / step.ln()).ceil() as i32;
    (0..=steps).map(|index| range.0 * step.powi(index)).collect()
}

/// Returns all values with the fewest contradictions, each with its threshold.
///
/// `evaluate` receives the lowest and the highest of some neighbouring values, and returns a threshold with at
/// most as many contradictions as any value between them. Ranges of values that cannot be the best are
/// therefore not searched further.
pub(super) fn find_best(
    values: &[f64],
    mut evaluate: impl FnMut(f64, f64) -> Option<Threshold>,
) -> Vec<(f64, Threshold)> {
    let mut cells = BTreeMap::new();
    let mut best: Vec<(f64, Threshold)> = Vec::new();
    let mut add = |cells: &mut BTreeMap<_, _>, first: usize, cell: &[f64]| {
        let (Some(low), Some(high)) = (cell.first(), cell.last()) else { return };
        if let Some(threshold) = evaluate(*low, *high) {
            cells.insert((threshold.contradictions, first), (cell.len(), threshold));
        }
    };
    for (index, cell) in values.chunks(CELL_SIZE).enumerate() {
        add(&mut cells, index * CELL_SIZE, cell);
    }
    while let Some(((contradictions, first), (len, threshold))) = cells.pop_first() {
        if best.first().is_some_and(|best| contradictions > best.1.contradictions) {
            break;
        }
        let Some(cell) = values.get(first..first + len) else { continue };
        match cell {
            [value] => best.push((*value, threshold)),
            _ => {
                let (left, right) = cell.split_at(len / 2);
                add(&mut cells, first, left);
                add(&mut cells, first + left.len(), right);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_best_values_are_found_with_few_evaluations() {
        let values = grid((0.1, 100.0), 1.01);
        let mut evaluations = 0;
        // 3 contradictions at 7 to 8, and more with the distance from them.
        let contradictions = |low: f64, high: f64| {
            let distance = (7.0 - high).max(low - 8.0).max(0.0);
            3 + (10.0 * distance).ceil() as u32
        };
        let best = find_best(&values, |low, high| {
            evaluations += 1;
            Some(Threshold { max_accepted: low, contradictions: contradictions(low, high) })
        });
        let mut found: Vec<f64> = best.iter().map(|(value, _)| *value).collect();
        found.sort_by(f64::total_cmp);
        let expected: Vec<f64> =
            values.iter().copied().filter(|value| (7.0..=8.0).contains(value)).collect();
        assert_eq!(found, expected);
        assert!(evaluations < values.len() / 4, "{evaluations} of {}", values.len());
    }
}
