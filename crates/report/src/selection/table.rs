//! Ranking table of a search and the notes below it.

use bakeoff_core::NanoDollars;
use bakeoff_select::{RankedCombination, SearchLimit, SearchOutcome};
use comfy_table::{CellAlignment, Table, presets};

/// Returns a table of the first `max_rows` combinations. Marks `best` and the Pareto front.
pub fn ranking_table(
    ranking: &[RankedCombination],
    best: Option<usize>,
    front: &[usize],
    max_rows: usize,
) -> String {
    let is_weighted = ranking.iter().any(|ranked| !ranked.is_score());
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let mut header = vec!["", "combination", "score", "95 % interval", "cells", "errors"];
    header.extend(["$ per task", "seconds", ""]);
    if is_weighted {
        header.insert(3, "worth");
    }
    table.set_header(header);
    for (index, ranked) in ranking.iter().take(max_rows).enumerate() {
        let mut marks = Vec::new();
        if best == Some(ranked.combo) {
            marks.push("best");
        }
        if front.contains(&ranked.combo) {
            marks.push("front");
        }
        if ranked.over_cost_limit {
            marks.push("too expensive");
        }
        if ranked.eliminated {
            marks.push("eliminated");
        }
        let mut row = vec![
            (index + 1).to_string(),
            ranked.name.clone(),
            number(ranked.score),
            ranked
                .interval
                .map_or_else(|| "–".to_owned(), |[low, high]| format!("{low:.3} – {high:.3}")),
            ranked.n.to_string(),
            if ranked.errors > 0 { ranked.errors.to_string() } else { String::new() },
            ranked.cost.map_or_else(|| "–".to_owned(), |cost| format!("{:.6}", cost.as_dollars())),
            format!("{:.2}", ranked.latency),
            marks.join(", "),
        ];
        if is_weighted {
            row.insert(3, number(ranked.mean));
        }
        table.add_row(row);
    }
    let columns = if is_weighted { 10 } else { 9 };
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index != 1 && column.index + 1 != columns {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
}

/// Returns the notes below the ranking: winner and confidence, reason, cost, eliminations.
pub fn selection_notes(selection: &SearchOutcome) -> Vec<String> {
    let winner = selection.ranking.iter().find(|ranked| ranked.combo == selection.winner);
    let name = winner.map_or("", |winner| winner.name.as_str());
    let confidence = match selection.confidence {
        Some(confidence) => format!(" (confidence {:.1} %)", 100.0 * round_down(confidence)),
        None => String::new(),
    };
    let mut notes =
        vec![format!("best: {name}{confidence}"), format!("reason: {}", selection.reason)];
    notes.push(format!(
        "cells: {} of {} ({:.0} %); spent: {}",
        selection.cells,
        selection.cells_of,
        100.0 * selection.cells as f64 / selection.cells_of.max(1) as f64,
        search_cost(selection.spent, selection.unknown_costs),
    ));
    if selection.saved.0 > 0 {
        notes.push(format!("shared answers saved: ${:.6}", selection.saved.as_dollars()));
    }
    let count = selection.eliminations.len();
    if count > 0 {
        let noun = if count == 1 { "combination" } else { "combinations" };
        notes.push(format!("{count} {noun} eliminated; see selection.json for details"));
    }
    if selection.stopped.is_some_and(|limit| limit != SearchLimit::Halted) {
        notes.push("budget exhausted; a larger budget may change the result".to_owned());
    }
    notes
}

/// Formats the cost of a search of which the cost of some cells may be unknown.
pub fn search_cost(known: Option<NanoDollars>, unknown_cells: usize) -> String {
    let Some(known) = known else { return "–".to_owned() };
    let amount = format!("${:.6}", known.as_dollars());
    match unknown_cells {
        0 => amount,
        1 => format!("≥ {amount} (the cost of 1 cell is unknown)"),
        cells => format!("≥ {amount} (the cost of {cells} cells is unknown)"),
    }
}

/// Rounds a probability down, so that it is not rounded up to certainty.
fn round_down(probability: f64) -> f64 {
    (probability * 1000.0).floor() / 1000.0
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bakeoff_select::Elimination;

    fn ranked(combo: usize, score: f64, eliminated: bool) -> RankedCombination {
        RankedCombination {
            combo,
            name: format!("planner=m{combo} + solver=large"),
            mean: Some(score),
            interval: (combo != 2).then_some([score - 0.1, score + 0.1]),
            score: Some(score),
            n: 40 - combo,
            errors: combo % 2,
            cost: Some(NanoDollars(1_000_000 * (combo as i64 + 1))),
            latency: 1.5,
            eliminated,
            over_cost_limit: false,
        }
    }

    pub(in crate::selection) fn selection() -> SearchOutcome {
        SearchOutcome {
            selector: "auto".to_owned(),
            winner: 1,
            confidence: Some(0.9996),
            reason: "the others are worse".to_owned(),
            stopped: Some(SearchLimit::Cost),
            ranking: vec![ranked(1, 0.8, false), ranked(0, 0.75, false), ranked(2, 0.1, true)],
            eliminations: vec![Elimination { combo: 2, after_cells: 30, by: Some(1) }],
            cells: 117,
            cells_of: 600,
            spent: Some(NanoDollars(500_000_000)),
            unknown_costs: 0,
            saved: NanoDollars(125_000_000),
            front: vec![0, 1],
        }
    }

    #[test]
    fn table_and_notes_describe_the_search() {
        let found = selection();
        let table = ranking_table(&found.ranking, Some(found.winner), &found.front, 10);
        insta::assert_snapshot!(table, @r#"
           combination                score  95 % interval  cells  errors  $ per task  seconds
        1  planner=m1 + solver=large  0.800  0.700 – 0.900     39       1    0.002000     1.50  best, front
        2  planner=m0 + solver=large  0.750  0.650 – 0.850     40            0.001000     1.50  front
        3  planner=m2 + solver=large  0.100              –     38            0.003000     1.50  eliminated
        "#);
        insta::assert_snapshot!(selection_notes(&found).join("\n"), @r#"
        best: planner=m1 + solver=large (confidence 99.9 %)
        reason: the others are worse
        cells: 117 of 600 (20 %); spent: $0.500000
        shared answers saved: $0.125000
        1 combination eliminated; see selection.json for details
        budget exhausted; a larger budget may change the result
        "#);
        let cost = |known, unknown| search_cost(known, unknown);
        assert_eq!(
            (cost(Some(NanoDollars(0)), 0).as_str(), cost(None, 3).as_str()),
            ("$0.000000", "–")
        );
        assert_eq!(
            cost(Some(NanoDollars(1_000_000)), 3),
            "≥ $0.001000 (the cost of 3 cells is unknown)"
        );
        let mut unknown = found.ranking[..1].to_vec();
        unknown[0].cost = None;
        insta::assert_snapshot!(ranking_table(&unknown, None, &[], 1), @r#"
           combination                score  95 % interval  cells  errors  $ per task  seconds
        1  planner=m1 + solver=large  0.800  0.700 – 0.900     39       1           –     1.50
        "#);
        let mut weighted = found.ranking.clone();
        weighted[0].mean = Some(0.7);
        insta::assert_snapshot!(ranking_table(&weighted, None, &[], 1), @r#"
           combination                score  worth  95 % interval  cells  errors  $ per task  seconds
        1  planner=m1 + solver=large  0.800  0.700  0.700 – 0.900     39       1    0.002000     1.50
        "#);
    }
}
