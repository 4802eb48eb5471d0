//! Ranking table of a search.

use bakeoff_core::NanoDollars;
use bakeoff_select::{RankedCombination, SearchOutcome};
use comfy_table::{CellAlignment, Table, presets};

/// Returns a table of the first `max_rows` combinations, numbered by rank. Marks `best`, its `equivalents` and the Pareto
/// front.
pub fn ranking_table(
    ranking: &[RankedCombination],
    outcome: Option<&SearchOutcome>,
    max_rows: usize,
) -> String {
    let columns = Columns::of(ranking);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.header());
    for (index, ranked) in ranking.iter().take(max_rows).enumerate() {
        let mut row = vec![(index + 1).to_string()];
        row.extend(columns.row(ranked));
        row.push(outcome.map_or_else(String::new, |outcome| marks(ranked, outcome)));
        table.add_row(row);
    }
    let last = columns.header().len() - 1;
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index != 1 && column.index != last {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Columns of a ranking that are not always shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    is_weighted: bool,
    is_adjusted: bool,
}

impl Columns {
    pub(super) fn of(ranking: &[RankedCombination]) -> Columns {
        Columns {
            is_weighted: ranking.iter().any(|ranked| !ranked.is_score()),
            is_adjusted: ranking.iter().any(RankedCombination::is_adjusted),
        }
    }

    /// Returns all names, from the number to the marks.
    pub(super) fn header(self) -> Vec<&'static str> {
        let mut names = vec!["", "combination"];
        names.extend(self.is_adjusted.then_some("adjusted"));
        names.push("score");
        names.extend(self.is_weighted.then_some("worth"));
        names.extend(["95 % interval", "cells", "errors", "$ per task", "seconds", ""]);
        names
    }

    /// Returns the values without the number and the marks.
    pub(super) fn row(self, ranked: &RankedCombination) -> Vec<String> {
        let mut row = vec![ranked.name.clone()];
        if self.is_adjusted {
            let mark = if ranked.is_adjusted() { "~" } else { "" };
            row.push(format!("{mark}{}", number(ranked.adjusted)));
        }
        row.push(number(ranked.score));
        if self.is_weighted {
            row.push(number(ranked.mean));
        }
        let interval = ranked.interval.map(|[low, high]| format!("{low:.3} – {high:.3}"));
        row.extend([
            interval.unwrap_or_else(|| "–".to_owned()),
            ranked.n.to_string(),
            if ranked.errors > 0 { ranked.errors.to_string() } else { String::new() },
            ranked.cost.map_or_else(|| "–".to_owned(), |cost| format!("{:.6}", cost.as_dollars())),
            format!("{:.2}", ranked.latency),
        ]);
        row
    }
}

/// Returns the marks of a combination.
pub(super) fn marks(ranked: &RankedCombination, outcome: &SearchOutcome) -> String {
    let marks = [
        ("best", outcome.winner == ranked.combo),
        ("equivalent", outcome.equivalents.contains(&ranked.combo)),
        ("front", outcome.front.contains(&ranked.combo)),
        ("too expensive", ranked.over_cost_limit),
        ("eliminated", ranked.eliminated),
    ];
    let marks = marks.into_iter().filter(|(_, is_set)| *is_set).map(|(mark, _)| mark);
    marks.collect::<Vec<&str>>().join(", ")
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::selection::selection_notes;
    use bakeoff_select::{Elimination, PairedGap, SearchLimit};

    fn ranked(combo: usize, score: f64, eliminated: bool) -> RankedCombination {
        RankedCombination {
            combo,
            name: format!("planner=m{combo} + solver=large"),
            mean: Some(score),
            interval: (combo != 2).then_some([score - 0.1, score + 0.1]),
            score: Some(score),
            adjusted: Some(score),
            adjusted_score: Some(score),
            n: 40 - combo,
            errors: combo % 2,
            gap: (combo != 1).then_some(PairedGap {
                difference: 0.8 - score,
                interval: [0.7 - score, 0.9 - score],
                cases: 38,
            }),
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
            claim: Some("no combination is more than 0.01 better on these cases".to_owned()),
            reason: "the others are worse".to_owned(),
            stopped: Some(SearchLimit::Cost),
            ranking: vec![ranked(1, 0.8, false), ranked(0, 0.75, false), ranked(2, 0.1, true)],
            equivalents: vec![0],
            next: Some(2),
            eliminations: vec![Elimination { combo: 2, after_cells: 30, by: Some(1) }],
            cells: 117,
            cells_of: 600,
            spent: Some(NanoDollars(500_000_000)),
            unknown_costs: 0,
            saved: NanoDollars(125_000_000),
            avoided: Some(NanoDollars(900_000_000)),
            front: vec![0, 1],
        }
    }

    #[test]
    fn table_and_notes_describe_the_search() {
        let found = selection();
        let table = ranking_table(&found.ranking, Some(&found), 10);
        insta::assert_snapshot!(table, @r#"
           combination                score  95 % interval  cells  errors  $ per task  seconds
        1  planner=m1 + solver=large  0.800  0.700 – 0.900     39       1    0.002000     1.50  best, front
        2  planner=m0 + solver=large  0.750  0.650 – 0.850     40            0.001000     1.50  equivalent, front
        3  planner=m2 + solver=large  0.100              –     38            0.003000     1.50  eliminated
        "#);
        insta::assert_snapshot!(selection_notes(&found).join("\n"), @r#"
        best: planner=m1 + solver=large
        confidence: no combination is more than 0.01 better on these cases: 99.9 % sure
        not distinguishable on these 38 cases: planner=m0 + solver=large
        next distinguishable: planner=m2 + solver=large, worse by 0.700 (95 % interval 0.600 – 0.800, 38 shared cases)
        cost: $0.002000 per task; no equivalent is more expensive; the cheapest equivalent (planner=m0 + solver=large) costs 0.50 times as much
        cells: 117 of 600 (20 %); spent: $0.500000
        saved: about $0.90 for 483 cells that were not evaluated, $0.125000 by shared answers
        reason to stop: the others are worse
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
        insta::assert_snapshot!(ranking_table(&unknown, None, 1), @r#"
           combination                score  95 % interval  cells  errors  $ per task  seconds
        1  planner=m1 + solver=large  0.800  0.700 – 0.900     39       1           –     1.50
        "#);
        let mut weighted = found.ranking.clone();
        (weighted[0].mean, weighted[0].adjusted) = (Some(0.7), Some(0.7));
        insta::assert_snapshot!(ranking_table(&weighted, None, 1), @r#"
           combination                score  worth  95 % interval  cells  errors  $ per task  seconds
        1  planner=m1 + solver=large  0.800  0.700  0.700 – 0.900     39       1    0.002000     1.50
        "#);
    }
}
