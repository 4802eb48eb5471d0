//! Markdown of a search: the findings and the best combinations.

use super::notes::selection_notes;
use super::table::{Columns, marks};
use crate::markdown::escape;
use bakeoff_select::SearchOutcome;
use std::fmt::Write;

/// Maximum number of rows; `selection.json` has all combinations.
const MAX_ROWS: usize = 20;

/// Formats a search as Markdown: a headline with the winner, the findings, and a table of the best combinations.
pub fn selection_markdown(selection: &SearchOutcome, suite: &str, run_id: &str) -> String {
    let winner = selection.ranked(selection.winner).map_or("", |winner| winner.name.as_str());
    let mut page = format!("## {}: best is {}\n\n", escape(suite), escape(winner));
    // Writing to a `String` cannot fail.
    for note in selection_notes(selection).iter().skip(1) {
        let _ = writeln!(page, "- {}", escape(note));
    }
    let columns = Columns::of(&selection.ranking);
    let header = columns.header();
    let _ = writeln!(page, "\n| {} |", header.join(" | "));
    let alignment = |index: usize| match index {
        1 => "---",
        index if index + 1 == header.len() => "---",
        _ => "---:",
    };
    let lines: Vec<&str> = (0..header.len()).map(alignment).collect();
    let _ = writeln!(page, "|{}|", lines.join("|"));
    for (index, ranked) in selection.ranking.iter().take(MAX_ROWS).enumerate() {
        let cells: Vec<String> = columns.row(ranked).iter().map(|cell| escape(cell)).collect();
        let marks = marks(ranked, selection);
        let _ = writeln!(page, "| {} | {} | {marks} |", index + 1, cells.join(" | "));
    }
    let hidden = selection.ranking.len().saturating_sub(MAX_ROWS);
    if hidden > 0 {
        let _ = writeln!(page, "\n… and {hidden} more in `selection.json`");
    }
    let _ = writeln!(page, "\n<sub>{}</sub>", escape(run_id));
    page
}
