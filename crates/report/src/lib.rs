//! Tables and export formats.
//!
//! Formats a [`bakeoff_core::Summary`], single trials, request records and a
//! [`bakeoff_select::SearchOutcome`] as text, JUnit XML, Markdown, CSV and SVG. This crate does not depend on
//! how a run was executed.

mod comparison;
mod details;
mod failures;
mod junit;
mod markdown;
mod rates;
mod rows;
mod selection;
mod table;
mod traffic;

pub use comparison::{comparison_lines, comparison_notes, comparison_table};
pub use details::Details;
pub use failures::Failures;
pub use junit::{JunitTests, write_junit};
pub use markdown::markdown;
pub use rates::{Rate, Rates, rates_table};
pub use rows::CsvRows;
pub use selection::{
    ranking_table, search_cost, selection_markdown, selection_notes, selection_svg,
};
pub use table::{notes, summary_table};
pub use traffic::{http_header, http_line, limit_header, limit_line, pool_line};

/// Error of a report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(std::io::Error),
    /// The data cannot be represented in the format.
    #[error("{0}")]
    Format(String),
}
