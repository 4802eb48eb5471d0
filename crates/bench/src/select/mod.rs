//! Comparison of selectors by find rate and cost.
//!
//! Recorded and generated matrices are replayed over seeds, each with another order of the datapoints. A lower bound
//! on the cost of any method is reported with the figures.

mod bound;
mod generate;
mod matrix;
mod replay;
mod table;

pub use bound::lower_bound;
pub use generate::{KINDS, MatrixKind, Quality, generate};
pub use matrix::{Matrix, MatrixError};
pub use replay::{BuildSelector, EPSILON, ReplayFigures, order, replay};
pub use table::{LARGE_SPACE, REFERENCE, SelectConfig, SelectRow, SelectTotal, select, totals};
