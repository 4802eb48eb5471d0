//! Comparison of selectors by find rate and cost.
//!
//! Recorded and generated matrices are replayed over seeds, each with another order of the datapoints. A lower bound
//! on the cost of any method is reported with the figures, and whether `auto` meets its goals.

mod bound;
mod chain;
mod generate;
mod goals;
mod matrix;
mod replay;
mod submatrix;
mod table;

pub use bound::lower_bound;
pub use generate::{KINDS, MatrixKind, Quality, generate};
pub use goals::{
    GOALS_OF, Goals, GroupGoals, MAX_COST, MAX_OVERCLAIM, MAX_SINGLE_OVERCLAIM, SIGNIFICANCE, goals,
};
pub use matrix::{Matrix, MatrixError};
pub use replay::{BuildSelector, EPSILON, ReplayFigures, order, replay};
pub use table::{
    LARGE_SPACE, MatrixGroup, REFERENCE, SelectConfig, SelectRow, SelectTotal, select, totals,
};
