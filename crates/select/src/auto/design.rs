//! Columns of the model that each combination loads on.

use crate::space::Space;

/// Design of the model: column 0 is shared by all combinations, and each candidate of each role has one.
///
/// With a single role the candidates are the combinations, and column 0 is the only one.
#[derive(Debug, Clone)]
pub(super) struct Design {
    /// Columns of each combination.
    pub(super) loads: Vec<Vec<usize>>,
    /// Family of each column: 0, or 1 + its role.
    pub(super) family: Vec<usize>,
    pub(super) families: usize,
}

impl Design {
    pub(super) fn new(space: &Space) -> Design {
        let mut design =
            Design { loads: vec![vec![0]; space.combos()], family: vec![0], families: 1 };
        if space.roles().len() > 1 {
            for (position, role) in space.roles().iter().enumerate() {
                let first = design.family.len();
                for (arm, loads) in design.loads.iter_mut().enumerate() {
                    loads.push(first + space.members(arm)[position] as usize);
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

#[cfg(test)]
mod tests {
    use super::Design;
    use crate::testing::grid;

    #[test]
    fn each_combination_loads_on_the_shared_column_and_one_per_role() {
        let design = Design::new(&grid(&[2, 3], 1));
        assert_eq!(design.family, [0, 1, 1, 2, 2, 2]);
        assert_eq!((&design.loads[0], &design.loads[5]), (&vec![0, 1, 3], &vec![0, 2, 5]));
        // With one role the candidates are the combinations and share only the datapoints.
        assert_eq!(Design::new(&grid(&[3], 1)).loads, vec![vec![0]; 3]);
    }
}
