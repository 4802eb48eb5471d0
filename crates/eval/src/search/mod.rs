//! Runs that execute only the trials that a selector asks for.
//!
//! Each combination is a target, so that journals, reports and resuming work as in any other run.

mod cells;
mod plan;
mod prices;
mod propose;
mod rounds;
mod routes;
mod search_run;
mod selection_file;

pub use plan::SearchOverrides;
pub use search_run::{FinishedSearch, SearchRun};
pub use selection_file::SelectionFile;
