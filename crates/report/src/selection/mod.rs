//! Reports of `select` searches.

mod markdown;
mod notes;
mod plot;
mod table;

pub use markdown::selection_markdown;
pub use notes::selection_notes;
pub use plot::selection_svg;
pub use table::{ranking_table, search_cost};
