//! Random parts of a recorded matrix: near-tied combinations on some of the datapoints.

use super::matrix::Matrix;
use bakeoff_select::{Role, Space, SpaceError};
use rand::rngs::ChaCha8Rng;
use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use std::ops::RangeInclusive;

/// Combinations of a part.
const COMBOS: RangeInclusive<usize> = 9..=20;

/// Datapoints of a part.
const DATAPOINTS: RangeInclusive<usize> = 100..=300;

impl Matrix {
    /// Returns a random part: neighbours in the ranking by mean score, and random datapoints. A matrix that is too small
    /// for that is used whole.
    ///
    /// # Errors
    ///
    /// Never for a valid matrix.
    pub fn part(&self, seed: u64) -> Result<Matrix, SpaceError> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let truth = self.truth();
        let mut ranking: Vec<usize> = (0..truth.len()).collect();
        ranking.sort_by(|&one, &other| truth[other].total_cmp(&truth[one]));
        let combos = rng.random_range(COMBOS).min(ranking.len());
        let first = rng.random_range(0..=ranking.len() - combos);
        let mut rows = ranking[first..first + combos].to_vec();
        rows.sort_unstable();
        let datapoints = rng.random_range(DATAPOINTS).min(self.space.datapoints());
        let columns = sample(&mut rng, self.space.datapoints(), datapoints).into_vec();
        let row = |&row: &usize| columns.iter().map(|&at| self.cells[row][at].clone()).collect();
        Ok(Matrix {
            name: format!("{} part", self.name),
            space: part_of_space(&self.space, &rows, datapoints)?,
            cells: rows.iter().map(row).collect(),
        })
    }
}

/// Returns the space of some combinations, with only the candidates that they use.
fn part_of_space(space: &Space, rows: &[usize], datapoints: usize) -> Result<Space, SpaceError> {
    let mut roles: Vec<Role> = Vec::new();
    let mut combos = vec![Vec::new(); rows.len()];
    for (number, role) in space.roles().iter().enumerate() {
        let mut used: Vec<u32> = rows.iter().map(|&row| space.members(row)[number]).collect();
        for (combo, member) in combos.iter_mut().zip(used.clone()) {
            combo.push(member);
        }
        used.sort_unstable();
        used.dedup();
        for combo in &mut combos {
            let index = used.iter().position(|member| *member == combo[number]);
            combo[number] = index.unwrap_or_default() as u32;
        }
        let candidates = used.iter().map(|&member| role.candidates[member as usize].clone());
        roles.push(Role { name: role.name.clone(), candidates: candidates.collect() });
    }
    let widen = |combo: Vec<u32>| combo.into_iter().map(|member| member as usize).collect();
    Space::from_combos(roles, combos.into_iter().map(widen).collect(), datapoints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::{KINDS, generate};

    #[test]
    fn part_consists_of_neighbours_in_the_ranking() {
        let whole = generate(&KINDS[2], 400, 1).unwrap();
        let part = whole.part(3).unwrap();
        assert!(
            COMBOS.contains(&part.space.combos()) && DATAPOINTS.contains(&part.space.datapoints())
        );
        let truth = whole.truth();
        let mut ranking: Vec<usize> = (0..truth.len()).collect();
        ranking.sort_by(|&one, &other| truth[other].total_cmp(&truth[one]));
        let place = |combo: usize| {
            let name = part.space.describe(combo);
            ranking.iter().position(|&row| whole.space.describe(row) == name).unwrap()
        };
        let mut places: Vec<usize> = (0..part.space.combos()).map(place).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[1] == pair[0] + 1), "{places:?}");
        assert_eq!(part.cells, whole.part(3).unwrap().cells);
        assert_ne!(part.cells.len(), whole.part(4).unwrap().cells.len());
    }
}
