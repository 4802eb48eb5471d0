//! Blocked Cholesky factorisation.
//!
//! Most of the work becomes matrix products, which are many times faster than column operations.

use nalgebra::{DMatrix, DVector};

/// Rows of a block.
const BLOCK: usize = 48;

/// Lower triangular Cholesky factor; entries above the diagonal are zero.
pub(super) struct Factor {
    lower: DMatrix<f64>,
}

impl Factor {
    /// Factorises a matrix; `None` if it is not positive definite to working precision.
    pub(super) fn new(mut matrix: DMatrix<f64>) -> Option<Factor> {
        let size = matrix.nrows();
        for from in (0..size).step_by(BLOCK) {
            let to = (from + BLOCK).min(size);
            let (width, below) = (to - from, size - to);
            let corner =
                matrix.view((from, from), (width, width)).clone_owned().cholesky()?.unpack();
            matrix.view_mut((from, from), (width, width)).copy_from(&corner);
            matrix.view_mut((0, from), (from, width)).fill(0.0);
            if below == 0 {
                continue;
            }
            let mut side = matrix.view((to, from), (below, width)).transpose();
            corner.solve_lower_triangular_mut(&mut side);
            let across = side.transpose();
            matrix.view_mut((to, from), (below, width)).copy_from(&across);
            matrix.view_mut((to, to), (below, below)).gemm(-1.0, &across, &side, 1.0);
        }
        Some(Factor { lower: matrix })
    }

    /// Solves the lower triangular system for each column, in place.
    pub(super) fn solve_lower(&self, columns: &mut DMatrix<f64>) {
        let (size, count) = columns.shape();
        for from in (0..size).step_by(BLOCK) {
            let to = (from + BLOCK).min(size);
            let corner = self.lower.view((from, from), (to - from, to - from));
            let mut part = columns.view((from, 0), (to - from, count)).clone_owned();
            corner.solve_lower_triangular_mut(&mut part);
            columns.view_mut((from, 0), (to - from, count)).copy_from(&part);
            if to < size {
                let side = self.lower.view((to, from), (size - to, to - from));
                columns.view_mut((to, 0), (size - to, count)).gemm(-1.0, &side, &part, 1.0);
            }
        }
    }

    /// Solves the lower triangular system for one column, in place.
    pub(super) fn solve_lower_one(&self, column: &mut DVector<f64>) {
        self.lower.solve_lower_triangular_mut(column);
    }

    /// Solves the system.
    pub(super) fn solve(&self, target: &DVector<f64>) -> DVector<f64> {
        let mut values = target.clone();
        self.lower.solve_lower_triangular_mut(&mut values);
        self.lower.tr_solve_lower_triangular_mut(&mut values);
        values
    }

    /// Returns the inverse L⁻¹ of the factor; the inverse of the matrix is (L⁻¹)ᵀ·L⁻¹.
    pub(super) fn inverse(&self) -> DMatrix<f64> {
        let size = self.lower.nrows();
        let mut inverse = DMatrix::identity(size, size);
        self.solve_lower(&mut inverse);
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A positive definite matrix.
    fn matrix(size: usize) -> DMatrix<f64> {
        let root =
            DMatrix::from_fn(size, size, |row, column| ((row * 7 + column * 13) % 11) as f64);
        &root * root.transpose() + DMatrix::identity(size, size) * 5.0
    }

    #[test]
    fn blocked_factor_equals_the_plain_one() {
        for size in [1, BLOCK, 2 * BLOCK + 17] {
            let matrix = matrix(size);
            let (ours, plain) =
                (Factor::new(matrix.clone()).unwrap(), matrix.clone().cholesky().unwrap());
            assert!((&ours.lower - plain.l()).abs().max() < 1e-8);
            let target = DVector::from_fn(size, |row, _| row as f64 - 3.0);
            assert!((&matrix * ours.solve(&target) - &target).abs().max() < 1e-6);
            let inverse = ours.inverse();
            assert!((inverse.transpose() * &inverse - plain.inverse()).abs().max() < 1e-8);
            let mut columns = DMatrix::from_fn(size, 3, |row, column| (row + column) as f64);
            let mut one = columns.column(1).clone_owned();
            ours.solve_lower(&mut columns);
            ours.solve_lower_one(&mut one);
            assert!((columns.column(1) - one).abs().max() < 1e-8);
        }
    }

    #[test]
    fn indefinite_matrix_is_rejected() {
        let mut matrix = matrix(2 * BLOCK);
        matrix[(BLOCK + 3, BLOCK + 3)] = -1.0;
        assert!(Factor::new(matrix).is_none());
    }
}
