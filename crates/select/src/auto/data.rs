//! Data of the model: scores by datapoint, in blocks that the same combinations saw.

use super::table::ScoreTable;

/// Consecutive datapoints that were evaluated for the same combinations.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) arms: Vec<usize>,
}

impl Block {
    pub(super) fn len(&self) -> f64 {
        (self.to - self.from) as f64
    }
}

/// Scores with gaps filled, divided into blocks.
#[derive(Debug)]
pub(super) struct ModelData {
    /// Number of datapoints of the space.
    pub(super) total: usize,
    /// Scaled scores of each combination.
    pub(super) rows: Vec<Vec<f64>>,
    /// Difference in scores that corresponds to 1 in `rows`.
    pub(super) unit: f64,
    is_bounded: bool,
    /// Share of each row that was observed.
    pub(super) present: Vec<f64>,
    pub(super) blocks: Vec<Block>,
    /// Number of blocks of each combination.
    pub(super) reach: Vec<usize>,
}

impl ModelData {
    /// Creates the data from a table; `max_depth` limits each row.
    pub(super) fn new(table: &ScoreTable, max_depth: impl Fn(usize) -> usize) -> ModelData {
        let present = |arm: usize| {
            if table.is_error_prone(arm) { 1.0 } else { (1.0 - table.errored_share(arm)).max(1e-3) }
        };
        let mut rows = filled(table);
        rows.iter_mut().enumerate().for_each(|(arm, row)| row.truncate(max_depth(arm)));
        ModelData::of(table.total(), rows, (0..table.arms()).map(present).collect())
    }

    /// Creates the data from rows without gaps, each a prefix of the datapoint order.
    pub(super) fn of(total: usize, mut rows: Vec<Vec<f64>>, present: Vec<f64>) -> ModelData {
        // The model expects scores from 0 to 1; other ranges are scaled.
        let all = || rows.iter().flatten().copied();
        let (low, high) = (all().fold(0.0, f64::min), all().fold(1.0, f64::max));
        let unit = high - low;
        let is_bounded = unit <= 1.0;
        if !is_bounded {
            rows.iter_mut().flatten().for_each(|value| *value = (*value - low) / unit);
        }
        let mut depths: Vec<usize> = rows.iter().map(Vec::len).filter(|&depth| depth > 0).collect();
        depths.sort_unstable();
        depths.dedup();
        let reach = |row: &Vec<f64>| depths.iter().filter(|depth| **depth <= row.len()).count();
        let reach: Vec<usize> = rows.iter().map(reach).collect();
        let block = |number: usize| Block {
            from: if number == 0 { 0 } else { depths[number - 1] },
            to: depths[number],
            arms: (0..rows.len()).filter(|&arm| reach[arm] > number).collect(),
        };
        let blocks = (0..depths.len()).map(block).collect();
        ModelData { total, rows, unit, is_bounded, present, blocks, reach }
    }

    /// Whether the original scores are between 0 and 1.
    pub(super) fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    pub(super) fn depth(&self, arm: usize) -> usize {
        self.rows[arm].len()
    }
}

/// Fills errored cells with the value expected from their row and datapoint; the share of observed cells
/// accounts for their lack of information.
///
/// For an error-prone combination errors are zeros: it can win only if it wins with them.
fn filled(table: &ScoreTable) -> Vec<Vec<f64>> {
    let rows = || (0..table.arms()).map(|arm| table.row(arm));
    let known: Vec<Option<f64>> = rows().map(|row| mean_of(row.iter().copied())).collect();
    let overall = mean_of(known.iter().flatten().copied()).unwrap_or(0.0);
    let mean = |arm: usize| known[arm].unwrap_or(overall);
    let column = |at: usize| {
        let residuals =
            (0..table.arms()).filter_map(|arm| Some(table.row(arm).get(at)? - mean(arm)));
        mean_of(residuals).unwrap_or(0.0)
    };
    let all = || rows().flatten().copied().filter(|value| !value.is_nan());
    let (low, high) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
    let mut columns: Vec<Option<f64>> = vec![None; table.total()];
    let mut fill = |arm: usize| -> Vec<f64> {
        let is_error_prone = table.is_error_prone(arm);
        let cells = table.row(arm).iter().enumerate();
        cells
            .map(|(at, value)| {
                if !value.is_nan() {
                    return *value;
                }
                let expected = mean(arm) + *columns[at].get_or_insert_with(|| column(at));
                if is_error_prone { expected.min(0.0) } else { expected.max(low).min(high) }
            })
            .collect()
    };
    (0..table.arms()).map(&mut fill).collect()
}

/// Returns the mean of the values that are not NaN.
fn mean_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let known = values.filter(|value| !value.is_nan());
    let (sum, count) = known.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{filled as evidence, space};

    /// A table with these rows and unshuffled datapoints.
    fn table(rows: &[Vec<Option<f64>>]) -> ScoreTable {
        let space = space(rows.len(), rows[0].len());
        let mut table = ScoreTable::in_order(&space);
        let evidence = evidence(&space, rows);
        (0..rows.len()).for_each(|arm| {
            table.advance(arm, rows[0].len(), &evidence);
        });
        table.update(&evidence);
        table
    }

    #[test]
    fn blocks_hold_datapoints_of_the_same_combinations() {
        let data = ModelData::of(9, vec![vec![0.0; 2], vec![0.0; 5], vec![0.0; 2]], vec![1.0; 3]);
        let blocks: Vec<_> = data.blocks.iter().map(|of| (of.from, of.to, &of.arms[..])).collect();
        assert_eq!(blocks, [(0, 2, &[0, 1, 2][..]), (2, 5, &[1][..])]);
        assert_eq!(data.reach, [1, 2, 1]);
    }

    #[test]
    fn gap_is_filled_from_its_row_and_column() {
        let row = |scores: [f64; 4]| scores.map(Some).to_vec();
        let mut gap = row([0.6, 0.6, 0.6, 0.6]);
        gap[0] = None;
        let row2 = vec![Some(0.9), Some(0.5)];
        let data = ModelData::new(&table(&[gap, row([1.0, 0.5, 0.5, 0.0])]), |_| 9);
        // The row has mean 0.6, and the other row is 0.5 above its mean there; the maximum is 1.
        assert!((data.rows[0][0] - 1.0).abs() < 1e-9 && data.is_bounded, "{:?}", data.rows[0]);
        let data = ModelData::new(&table(&[vec![None, Some(0.5)], row2]), |_| 9);
        assert!((data.rows[0][0] - 0.7).abs() < 1e-9, "{:?}", data.rows[0]);
        assert!((data.present[0] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn errors_of_an_error_prone_combination_are_zeros() {
        let mut error_prone = vec![Some(1.0); 10];
        (error_prone[2], error_prone[5]) = (None, None);
        let data = ModelData::new(&table(&[error_prone, vec![Some(0.5); 10]]), |_| 99);
        assert_eq!((data.rows[0][2], data.rows[0][5], data.rows[0][0]), (0.0, 0.0, 1.0));
        assert!((data.present[0] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn scores_of_other_ranges_are_scaled() {
        let data = ModelData::of(2, vec![vec![-10.0, 30.0], vec![10.0]], vec![1.0; 2]);
        assert_eq!(
            (data.rows, data.unit, data.is_bounded),
            (vec![vec![0.0, 1.0], vec![0.5]], 40.0, false)
        );
        let data = ModelData::of(2, vec![vec![0.2, 0.4]], vec![1.0]);
        assert_eq!((data.rows, data.unit, data.is_bounded), (vec![vec![0.2, 0.4]], 1.0, true));
    }
}
