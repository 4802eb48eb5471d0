//! What the model is conditioned on: scores by datapoint, in blocks that the same combinations saw.

use super::table::Table;

/// Datapoints that were seen by the same combinations.
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

/// Scores with gaps filled, and the blocks.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) total: usize,
    pub(super) rows: Vec<Vec<f64>>,
    /// What a difference of 1 between rows is in scores.
    pub(super) unit: f64,
    bounded: bool,
    /// Share of each row that tells something.
    pub(super) present: Vec<f64>,
    pub(super) blocks: Vec<Block>,
    /// How many blocks each combination has seen.
    pub(super) reach: Vec<usize>,
}

impl Seen {
    /// `within` says how much of each row is looked at.
    pub(super) fn new(table: &Table, within: impl Fn(usize) -> usize) -> Seen {
        let present = |arm: usize| {
            if table.errs(arm) { 1.0 } else { (1.0 - table.missing(arm)).max(1e-3) }
        };
        let mut rows = filled(table);
        rows.iter_mut().enumerate().for_each(|(arm, row)| row.truncate(within(arm)));
        Seen::of(table.total(), rows, (0..table.arms()).map(present).collect())
    }

    /// Of rows without gaps, each a prefix of all datapoints.
    pub(super) fn of(total: usize, mut rows: Vec<Vec<f64>>, present: Vec<f64>) -> Seen {
        // The model thinks of scores from 0 to 1; others are brought there.
        let all = || rows.iter().flatten().copied();
        let (low, high) = (all().fold(0.0, f64::min), all().fold(1.0, f64::max));
        let unit = high - low;
        let bounded = unit <= 1.0;
        if !bounded {
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
        Seen { total, rows, unit, bounded, present, blocks, reach }
    }

    /// Whether scores lie between 0 and 1 by themselves.
    pub(super) fn is_bounded(&self) -> bool {
        self.bounded
    }

    pub(super) fn depth(&self, arm: usize) -> usize {
        self.rows[arm].len()
    }
}

/// An errored cell gets what the row and the others on its datapoint let one expect. That it tells
/// nothing is accounted for by the share that is present. Who errs often has its errors counted as
/// zeros: it can only win if it wins with them.
fn filled(table: &Table) -> Vec<Vec<f64>> {
    let rows = || (0..table.arms()).map(|arm| table.row(arm));
    let known: Vec<Option<f64>> = rows().map(|row| mean_of(row.iter().copied())).collect();
    let overall = mean_of(known.iter().flatten().copied()).unwrap_or(0.0);
    let mean = |arm: usize| known[arm].unwrap_or(overall);
    let column = |at: usize| {
        let there = (0..table.arms()).filter_map(|arm| Some(table.row(arm).get(at)? - mean(arm)));
        mean_of(there).unwrap_or(0.0)
    };
    let all = || rows().flatten().copied().filter(|value| !value.is_nan());
    let (low, high) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
    let mut columns: Vec<Option<f64>> = vec![None; table.total()];
    let mut fill = |arm: usize| -> Vec<f64> {
        let errs = table.errs(arm);
        let cells = table.row(arm).iter().enumerate();
        cells
            .map(|(at, value)| {
                if !value.is_nan() {
                    return *value;
                }
                let guess = mean(arm) + *columns[at].get_or_insert_with(|| column(at));
                if errs { guess.min(0.0) } else { guess.max(low).min(high) }
            })
            .collect()
    };
    (0..table.arms()).map(&mut fill).collect()
}

/// The mean of what is there.
fn mean_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let there = values.filter(|value| !value.is_nan());
    let (sum, count) = there.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{filled as evidence, space};

    /// What `rows` give when the datapoints are not shuffled.
    fn table(rows: &[Vec<Option<f64>>]) -> Table {
        let space = space(rows.len(), rows[0].len());
        let mut table = Table::in_order(&space);
        let evidence = evidence(&space, rows);
        (0..rows.len()).for_each(|arm| {
            table.advance(arm, rows[0].len(), &evidence);
        });
        table.update(&evidence);
        table
    }

    #[test]
    fn blocks_are_where_the_same_saw_the_same() {
        let seen = Seen::of(9, vec![vec![0.0; 2], vec![0.0; 5], vec![0.0; 2]], vec![1.0; 3]);
        let blocks: Vec<_> = seen.blocks.iter().map(|of| (of.from, of.to, &of.arms[..])).collect();
        assert_eq!(blocks, [(0, 2, &[0, 1, 2][..]), (2, 5, &[1][..])]);
        assert_eq!(seen.reach, [1, 2, 1]);
    }

    #[test]
    fn a_gap_gets_what_row_and_column_let_one_expect() {
        let row = |scores: [f64; 4]| scores.map(Some).to_vec();
        let mut gap = row([0.6, 0.6, 0.6, 0.6]);
        gap[0] = None;
        let row2 = vec![Some(0.9), Some(0.5)];
        let seen = Seen::new(&table(&[gap, row([1.0, 0.5, 0.5, 0.0])]), |_| 9);
        // The row's mean is 0.6, and the other is 0.4 above its own mean there; but nothing is above 1.
        assert!((seen.rows[0][0] - 1.0).abs() < 1e-9 && seen.bounded, "{:?}", seen.rows[0]);
        let seen = Seen::new(&table(&[vec![None, Some(0.5)], row2]), |_| 9);
        assert!((seen.rows[0][0] - 0.7).abs() < 1e-9, "{:?}", seen.rows[0]);
        assert!((seen.present[0] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_errors_of_one_who_errs_are_zeros() {
        let mut erring = vec![Some(1.0); 10];
        (erring[2], erring[5]) = (None, None);
        let seen = Seen::new(&table(&[erring, vec![Some(0.5); 10]]), |_| 99);
        assert_eq!((seen.rows[0][2], seen.rows[0][5], seen.rows[0][0]), (0.0, 0.0, 1.0));
        assert!((seen.present[0] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn scores_of_other_ranges_are_brought_to_one() {
        let seen = Seen::of(2, vec![vec![-10.0, 30.0], vec![10.0]], vec![1.0; 2]);
        assert_eq!(
            (seen.rows, seen.unit, seen.bounded),
            (vec![vec![0.0, 1.0], vec![0.5]], 40.0, false)
        );
        let seen = Seen::of(2, vec![vec![0.2, 0.4]], vec![1.0]);
        assert_eq!((seen.rows, seen.unit, seen.bounded), (vec![vec![0.2, 0.4]], 1.0, true));
    }
}
