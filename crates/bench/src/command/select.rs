//! `bakeoff-bench select`.

use crate::arguments::SelectArguments;
use crate::printer::{Printer, chain};
use bakeoff_bench::select::{
    GOALS_OF, Goals, KINDS, LARGE_SPACE, MAX_COST, MAX_OVERCLAIM, MAX_SINGLE_OVERCLAIM, Matrix,
    MatrixGroup, REFERENCE, SIGNIFICANCE, SelectConfig, SelectRow, generate, goals, select, totals,
};
use bakeoff_core::ExitCode;
use bakeoff_select::SELECTOR_NAMES;
use serde_json::json;
use std::path::Path;

/// Datapoints of generated matrices.
const DATAPOINTS: usize = 200;

pub(crate) fn run(arguments: &SelectArguments, printer: &Printer) -> ExitCode {
    let mut groups = Vec::new();
    for path in &arguments.matrices {
        match read(path) {
            Ok(matrix) => groups.push(MatrixGroup { is_recorded: true, matrices: vec![matrix] }),
            Err(message) => return printer.usage_error(&message, Some(MATRIX_HINT)),
        }
    }
    for path in &arguments.parts_of {
        let parts = read(path).and_then(|matrix| {
            let part = |seed| matrix.part(seed).map_err(|error| error.to_string());
            (arguments.seed..arguments.seed + arguments.parts).map(part).collect()
        });
        match parts {
            Ok(matrices) => groups.push(MatrixGroup { is_recorded: true, matrices }),
            Err(message) => return printer.usage_error(&message, Some(MATRIX_HINT)),
        }
    }
    groups.extend(generated(&arguments.generated, arguments.seed, arguments.instances));
    if groups.is_empty() {
        let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let hint = format!("generated matrices: {}", kinds.join(", "));
        return printer.usage_error("no matrix to measure on", Some(&hint));
    }
    let config = SelectConfig {
        groups,
        selectors: match arguments.selectors.is_empty() {
            // `lm_proposal` needs a model.
            true => (SELECTOR_NAMES.iter().filter(|name| **name != "lm_proposal"))
                .map(|name| (*name).to_owned())
                .collect(),
            false => arguments.selectors.clone(),
        },
        seeds: arguments.seed..arguments.seed + arguments.seeds,
        confidence: arguments.confidence,
    };
    let mut last = String::new();
    let mut print_row = |row: &SelectRow| {
        if arguments.json {
            printer.json(&as_json(row));
            return;
        }
        if last != row.matrix {
            last.clone_from(&row.matrix);
            heading(row).iter().for_each(|line| printer.data(line));
        }
        printer.data(as_line(row));
    };
    match select(&config, &mut print_row) {
        Ok(_) if arguments.json => {}
        Ok(rows) => {
            summary(&rows).iter().for_each(|line| printer.data(line));
            let goals = goals(&rows, arguments.confidence);
            let lines = goals.map(|goals| goals_table(&goals, arguments.confidence));
            lines.iter().flatten().for_each(|line| printer.data(line));
        }
        Err(error) => {
            let hint = "`bakeoff-bench select --help` lists the selectors";
            return printer.usage_error(&error.to_string(), Some(hint));
        }
    }
    ExitCode::Passed
}

const MATRIX_HINT: &str = "a matrix is JSON: `benchmark`, `combos` (\"role=model + role=model\"), \
    `datapoints`, and a row for each combination in `score`, `latency_s` and `cost_usd`";

fn read(path: &Path) -> Result<Matrix, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Matrix::parse(&text).map_err(|error| format!("{}: {}", path.display(), chain(&error)))
}

/// Returns the generated matrices by kind; each has its own seed, counted from `first`.
fn generated(filter: &str, first: u64, instances: u64) -> Vec<MatrixGroup> {
    let kinds = KINDS.iter().enumerate();
    let kinds = kinds.filter(|(_, kind)| filter == "all" || kind.name.contains(filter));
    let make = |(number, kind)| {
        let seed = |instance| 1_000_000 * (number as u64 + 1) + instance;
        let instances = first..first + instances;
        let matrices = instances.filter_map(|one| generate(kind, DATAPOINTS, seed(one)).ok());
        MatrixGroup { is_recorded: false, matrices: matrices.collect() }
    };
    kinds.map(make).collect()
}

fn heading(row: &SelectRow) -> Vec<String> {
    vec![
        String::new(),
        format!(
            "{}: {}{} combinations × {} datapoints; lower bound of the cost: {:.3} of brute force",
            row.matrix,
            match row.matrices.len() {
                1 => String::new(),
                count => format!("{count} matrices, the first with "),
            },
            row.combos,
            row.datapoints,
            row.bound
        ),
        format!(
            "{:<16} {:>5} {:>6} {:>7} {:>7} {:>6} {:>6} {:>6} {:>8} {:>8} {:>8}",
            "selector",
            "find",
            "lowest",
            "regret",
            "cells",
            "share",
            "cost",
            "of AE",
            "of bound",
            "claimed",
            "CPU ms"
        ),
    ]
}

fn as_line(row: &SelectRow) -> String {
    let figures = &row.figures;
    let ratio = |base: f64| match figures.cost_share / base {
        ratio if ratio < 1e4 => format!("{ratio:.2}"),
        _ => "–".to_owned(),
    };
    format!(
        "{:<16} {:>5.2} {:>6.2} {:>7.4} {:>7.0} {:>6.3} {:>6.3} {:>6} {:>8} {:>8} {:>8.1}",
        row.selector,
        figures.find_rate,
        row.lowest(),
        figures.regret,
        figures.cells,
        figures.cells_share,
        figures.cost_share,
        row.reference.map_or(String::new(), ratio),
        ratio(row.bound),
        if row.has_confidence { format!("{:.3}", figures.claimed) } else { String::new() },
        row.cpu_seconds * 1e3,
    )
}

fn as_json(row: &SelectRow) -> serde_json::Value {
    let figures = &row.figures;
    json!({
        "matrix": row.matrix,
        "selector": row.selector,
        "find_rate": figures.find_rate,
        "regret": figures.regret,
        "cells": figures.cells,
        "cells_share": figures.cells_share,
        "cost_share": figures.cost_share,
        "seeds": figures.seeds,
        "matrices": row.matrices.len(),
        "is_recorded": row.is_recorded,
        "lowest_find_rate": row.lowest(),
        "combos": row.combos,
        "datapoints": row.datapoints,
        "lower_bound": row.bound,
        "claimed": row.has_confidence.then_some(figures.claimed),
        "cpu_seconds": row.cpu_seconds,
    })
}

fn summary(rows: &[SelectRow]) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        format!(
            "Over all matrices (AE: {REFERENCE}; large: at least {LARGE_SPACE} combinations; overclaim: \
             claimed minus found)"
        ),
        format!(
            "{:<16} {:>5} {:>6} {:>9} {:>6} {:>9} {:>8}  {}",
            "selector",
            "find",
            "lowest",
            "overclaim",
            "of AE",
            "AE, large",
            "of bound",
            "lowest on"
        ),
    ];
    let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    lines.extend(totals(rows).iter().map(|total| {
        format!(
            "{:<16} {:>5.3} {:>6.2} {:>9} {:>6} {:>9} {:>8.2}  {}",
            total.selector,
            total.find_rate,
            total.lowest.0,
            total.overclaim.map_or(String::new(), |over| format!("{over:+.3}")),
            ratio(total.of_reference),
            ratio(total.of_reference_large),
            total.of_bound,
            total.lowest.1,
        )
    }));
    lines
}

/// Returns the figures that have goals; groups that miss one are marked.
fn goals_table(goals: &Goals, confidence: f64) -> Vec<String> {
    let line = |group: &str, cells: [&str; 9]| {
        let [matrices, claimed, found, over, worst, lowest, p, cost, missed] = cells;
        format!(
            "{group:<24} {matrices:>8} {claimed:>7} {found:>5} {over:>6} {worst:>6} {lowest:>6} {p:>6} {cost:>5}  {missed}"
        )
    };
    let goal = |limit: f64| format!("≤{limit:.2}");
    let mut lines = vec![
        String::new(),
        format!("Goals of {GOALS_OF} at a confidence of {confidence}"),
        "  over    claimed confidence minus find rate".to_owned(),
        "  worst   the same on the worst single matrix".to_owned(),
        "  lowest  lowest find rate of a single matrix".to_owned(),
        format!(
            "  p       exact binomial test that no matrix has a find rate below {:.2}; the lowest of all matrices",
            confidence - MAX_OVERCLAIM
        ),
        format!("  cost    relative to the larger of the cost of {REFERENCE} and the lower bound"),
        line(
            "group",
            ["matrices", "claimed", "found", "over", "worst", "lowest", "p", "cost", "missed"],
        ),
        line(
            "goal",
            [
                "",
                "",
                "",
                &goal(MAX_OVERCLAIM),
                &goal(MAX_SINGLE_OVERCLAIM),
                "",
                &format!("≥{SIGNIFICANCE}"),
                &goal(MAX_COST),
                "",
            ],
        ),
    ];
    lines.extend(goals.groups.iter().map(|group| {
        line(
            &group.group,
            [
                &group.matrices.to_string(),
                &format!("{:.3}", group.claimed),
                &format!("{:.3}", group.found),
                &format!("{:+.3}", group.overclaim()),
                &format!("{:+.3}", group.single_overclaim),
                &format!("{:.2}", group.lowest),
                &format!("{:.3}", group.p_value),
                &group.cost.map_or(String::new(), |cost| format!("{cost:.2}")),
                &group.missed().join(", "),
            ],
        )
    }));
    let verdict = |is_met: bool| if is_met { "met" } else { "missed" };
    lines.push(format!(
        "mean find rate of the groups: {:.3}; goal: at least {confidence}: {}",
        goals.found,
        verdict(goals.found >= confidence)
    ));
    lines.extend(goals.recorded_cost.map(|cost| {
        let verdict = verdict(cost <= 1.0);
        format!(
            "mean cost of recorded groups: {cost:.2} of {REFERENCE}; goal: at most 1: {verdict}"
        )
    }));
    lines
}
