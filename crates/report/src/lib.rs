//! How do people look at it?
//!
//! Views of a [`bakeoff_core::Summary`] as text. How the run was made is for others to know.

mod failures;
mod table;

pub use failures::Failures;
pub use table::summary_table;
