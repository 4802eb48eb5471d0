//! What a search for the best combination came to.

mod plot;
mod table;

pub use plot::selection_svg;
pub use table::{ranking_table, selection_notes};
