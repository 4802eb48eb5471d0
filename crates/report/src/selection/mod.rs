//! Reports of `select` searches.

mod plot;
mod table;

pub use plot::selection_svg;
pub use table::{ranking_table, search_cost, selection_notes};
