//! How do people look at it?
//!
//! Views of a [`bakeoff_core::Summary`], of single trials, of how calls went out, and of a
//! [`bakeoff_select::Selection`]: as text, JUnit XML, Markdown, CSV and SVG. How the run was made is for others to know.

mod comparison;
mod details;
mod failures;
mod junit;
mod markdown;
mod rows;
mod selection;
mod table;
mod traffic;

pub use comparison::comparison_lines;
pub use details::Details;
pub use failures::Failures;
pub use junit::write_junit;
pub use markdown::markdown;
pub use rows::CsvRows;
pub use selection::{ranking_table, selection_notes, selection_svg};
pub use table::{notes, summary_table};
pub use traffic::{http_header, http_line, limit_header, limit_line, pool_line};

/// A view cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot take it.
    #[error("cannot write: {0}")]
    Write(std::io::Error),
    /// The format cannot hold it.
    #[error("{0}")]
    Format(String),
}
