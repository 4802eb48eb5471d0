//! Which selector finds the best for the least money?
//!
//! Matrices, recorded or made, are replayed over seeds with the datapoints in another order each
//! time. Beside the figures stands what no method can do without.

mod bound;
mod generate;
mod matrix;
mod replay;
mod table;

pub use bound::lower_bound;
pub use generate::{KINDS, Kind, Quality, generate};
pub use matrix::{Matrix, MatrixError};
pub use replay::{EPSILON, Figures, Make, order, replay};
pub use table::{LARGE, RIVAL, SelectConfig, SelectRow, SelectTotal, select, totals};
