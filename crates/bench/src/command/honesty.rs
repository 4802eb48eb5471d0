//! `bakeoff-bench honesty`.

use super::block_on;
use crate::arguments::{HonestyArguments, HonestyPart};
use crate::printer::Printer;
use bakeoff_bench::Error;
use bakeoff_bench::honesty::{
    CoverageRow, Outcome, PairCounts, StopRow, coverage, early_stops, identical_targets,
    random_pairs,
};
use serde_json::{Map, Value, json};

pub(crate) fn run(arguments: &HonestyArguments, printer: &Printer) -> Result<(), Error> {
    let is_wanted =
        |part: HonestyPart| arguments.parts.is_empty() || arguments.parts.contains(&part);
    let mut found = Map::new();
    if is_wanted(HonestyPart::Stops) {
        found.insert("stops".to_owned(), stops(arguments, printer)?);
    }
    if is_wanted(HonestyPart::Coverage) {
        found.insert("coverage".to_owned(), intervals(arguments, printer));
    }
    if is_wanted(HonestyPart::Comparisons) {
        found.extend(comparisons(arguments, printer)?);
    }
    if arguments.json {
        printer.json(&Value::Object(found));
    }
    Ok(())
}

fn stops(arguments: &HonestyArguments, printer: &Printer) -> Result<Value, Error> {
    if !arguments.json {
        printer.data(format!(
            "{} runs of 50 trials each; other verdict: than all trials of the same seed give",
            arguments.seeds
        ));
        printer.data("true rate  threshold  other verdict  trials saved");
    }
    let mut print_row = |row: &StopRow| {
        if !arguments.json {
            let other = 100.0 * row.other_verdicts as f64 / row.seeds as f64;
            printer.data(format!(
                "{:>9}  {:>9}  {other:>11.2} %  {:>10.1} %",
                row.true_rate,
                row.threshold,
                100.0 * row.saved
            ));
        }
    };
    let rows = block_on(early_stops(arguments.seeds, &mut print_row))?;
    let rows = rows.iter().map(|row| {
        json!({
            "true_rate": row.true_rate,
            "threshold": row.threshold,
            "seeds": row.seeds,
            "other_verdicts": row.other_verdicts,
            "saved": row.saved,
        })
    });
    Ok(Value::Array(rows.collect()))
}

/// Measures the coverage of intervals and prints, for each number of cases and trials, the distribution with
/// the lowest coverage.
fn intervals(arguments: &HonestyArguments, printer: &Printer) -> Value {
    let rows = coverage(arguments.samples, &mut |_| {});
    if !arguments.json {
        printer.data(format!(
            "{} targets per distribution of cases; lowest coverage of 95 % intervals",
            arguments.samples
        ));
        printer.data(format!(
            "{:>5}  {:>6}  {:<44}  {}",
            "cases", "trials", "pass rate (mean width)", "score (mean width)"
        ));
        let sizes = |outcome| {
            let of_outcome = rows.iter().filter(move |row| row.outcome == outcome);
            of_outcome.map(|row| (row.cases, row.trials))
        };
        let mut last = None;
        for size in sizes(Outcome::PassOrFail) {
            if last.replace(size) != Some(size) {
                let [rate, score] = [Outcome::PassOrFail, Outcome::Score]
                    .map(|outcome| lowest_coverage(&rows, outcome, size));
                printer.data(format!("{:>5}  {:>6}  {rate:<44}  {score}", size.0, size.1));
            }
        }
    }
    let rows = rows.iter().map(|row| {
        json!({
            "outcome": match row.outcome {
                Outcome::PassOrFail => "pass_rate",
                Outcome::Score => "score",
            },
            "distribution": row.distribution,
            "cases": row.cases,
            "trials": row.trials,
            "coverage": row.coverage,
            "width": row.width,
        })
    });
    Value::Array(rows.collect())
}

fn lowest_coverage(rows: &[CoverageRow], outcome: Outcome, size: (usize, u64)) -> String {
    let rows: Vec<&CoverageRow> = rows
        .iter()
        .filter(|row| row.outcome == outcome && (row.cases, row.trials) == size)
        .collect();
    let width = rows.iter().map(|row| row.width).sum::<f64>() / rows.len().max(1) as f64;
    let lowest = rows.iter().min_by(|one, two| one.coverage.total_cmp(&two.coverage));
    lowest.map_or_else(String::new, |row| {
        format!("{:.1} % {} ({width:.2})", 100.0 * row.coverage, row.distribution)
    })
}

fn comparisons(
    arguments: &HonestyArguments,
    printer: &Printer,
) -> Result<Map<String, Value>, Error> {
    let differences = block_on(identical_targets(arguments.pairs))?;
    let PairCounts {
        pairs,
        differences: found,
        disagreements,
        adjusted_disagreements,
        equal_pairs,
        false_differences,
    } = random_pairs(arguments.pairs)?;
    if !arguments.json {
        printer.data(format!(
            "identical targets, 20 cases × 3 trials: a difference was found in {differences} of {pairs} pairs"
        ));
        printer.data(format!(
            "identical targets, 10 to 200 cases × 1 to 5 trials: a difference was found in {false_differences} \
             of {equal_pairs} pairs"
        ));
        printer.data(format!(
            "random pairs, 10 to 200 cases × 1 to 5 trials: a difference was found in {found} of {pairs} pairs"
        ));
        printer.data(format!(
            "interval and test disagree in {disagreements} of these {} pairs, and in {adjusted_disagreements} if \
             four are compared together",
            pairs + equal_pairs
        ));
    }
    let Value::Object(fields) = json!({
        "pairs": pairs,
        "differences": differences,
        "random_pairs": {
            "differences": found,
            "disagreements": disagreements,
            "adjusted_disagreements": adjusted_disagreements,
            "equal_pairs": equal_pairs,
            "false_differences": false_differences,
        },
    }) else {
        return Ok(Map::new());
    };
    Ok(fields)
}
