//! What the model is conditioned on: scores by datapoint, in blocks that the same combinations saw.

use super::table::Table;
use crate::space::Space;

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

/// Which columns of the model a combination loads on: 0 is everybody's, then one for each candidate
/// of each role. With one role the candidates are the combinations, and column 0 is all there is.
#[derive(Debug, Clone)]
pub(super) struct Design {
    pub(super) loads: Vec<Vec<usize>>,
    /// For each column, which family it is of: 0, or 1 + its role.
    pub(super) family: Vec<usize>,
    pub(super) families: usize,
}

impl Design {
    pub(super) fn new(space: &Space) -> Design {
        let mut design =
            Design { loads: vec![vec![0]; space.combos()], family: vec![0], families: 1 };
        if space.roles().len() > 1 {
            for (place, role) in space.roles().iter().enumerate() {
                let first = design.family.len();
                for (arm, loads) in design.loads.iter_mut().enumerate() {
                    loads.push(first + space.members(arm)[place] as usize);
                }
                design.family.extend(role.candidates.iter().map(|_| design.families));
                design.families += 1;
            }
        }
        design
    }

    pub(super) fn columns(&self) -> usize {
        self.family.len()
    }
}

/// Scores with gaps filled, and the blocks.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) total: usize,
    pub(super) rows: Vec<Vec<f64>>,
    /// Share of each row that did not error.
    pub(super) present: Vec<f64>,
    pub(super) blocks: Vec<Block>,
    /// How many blocks each combination has seen.
    pub(super) reach: Vec<usize>,
}

impl Seen {
    pub(super) fn new(table: &Table) -> Seen {
        let present = (0..table.arms()).map(|arm| (1.0 - table.missing(arm)).max(1e-3));
        Seen::of(table.total(), filled(table), present.collect())
    }

    /// Of rows without gaps, each a prefix of all datapoints.
    pub(super) fn of(total: usize, rows: Vec<Vec<f64>>, present: Vec<f64>) -> Seen {
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
        Seen { total, rows, present, blocks, reach }
    }

    pub(super) fn depth(&self, arm: usize) -> usize {
        self.rows[arm].len()
    }
}

/// An errored cell gets what the row and the others on its datapoint let one expect. That it tells
/// nothing is accounted for by the share that is present.
fn filled(table: &Table) -> Vec<Vec<f64>> {
    let rows = || (0..table.arms()).map(|arm| table.row(arm));
    if rows().all(|row| row.iter().all(|value| !value.is_nan())) {
        return rows().map(<[f64]>::to_vec).collect();
    }
    let known: Vec<f64> = rows().map(mean_of).collect();
    let overall = mean_of(&known);
    let means: Vec<f64> =
        known.iter().map(|mean| if mean.is_nan() { overall } else { *mean }).collect();
    let front = rows().map(<[f64]>::len).max().unwrap_or(0);
    let column = |at: usize| {
        let rest = rows().zip(&means).filter_map(|(row, mean)| Some(row.get(at)? - mean));
        let rest: Vec<f64> = rest.collect();
        let shift = mean_of(&rest);
        if shift.is_nan() { 0.0 } else { shift }
    };
    let columns: Vec<f64> = (0..front).map(column).collect();
    let fill = |(row, mean): (&[f64], &f64)| {
        let cells = row.iter().zip(&columns);
        cells
            .map(|(value, column)| {
                let guess = if mean.is_nan() { 0.5 } else { mean + column };
                if value.is_nan() { guess } else { *value }
            })
            .collect()
    };
    rows().zip(&means).map(fill).collect()
}

/// The mean of what is there; NaN when nothing is.
fn mean_of(values: &[f64]) -> f64 {
    let there = values.iter().filter(|value| !value.is_nan());
    let (sum, count) = there.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}
