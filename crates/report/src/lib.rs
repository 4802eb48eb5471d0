//! How do people look at it?
//!
//! Views of a [`bakeoff_core::Summary`], and of how calls went out, as text. How the run was made is for others to know.

mod failures;
mod table;
mod traffic;

pub use failures::Failures;
pub use table::summary_table;
pub use traffic::{http_header, http_line, limit_header, limit_line, pool_line};
