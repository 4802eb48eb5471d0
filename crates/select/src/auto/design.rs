//! Who shares what with whom.

use crate::space::Space;

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

#[cfg(test)]
mod tests {
    use super::Design;
    use crate::testing::grid;

    #[test]
    fn everybody_has_the_first_column_and_one_of_each_role() {
        let design = Design::new(&grid(&[2, 3], 1));
        assert_eq!(design.family, [0, 1, 1, 2, 2, 2]);
        assert_eq!((&design.loads[0], &design.loads[5]), (&vec![0, 1, 3], &vec![0, 2, 5]));
        // The candidates of one role are the combinations: nothing is shared but the datapoints.
        assert_eq!(Design::new(&grid(&[3], 1)).loads, vec![vec![0]; 3]);
    }
}
