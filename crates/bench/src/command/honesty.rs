//! `bakeoff-bench honesty`.

use super::block_on;
use crate::arguments::HonestyArguments;
use crate::printer::Printer;
use bakeoff_bench::{Error, HonestyConfig, StopRow, honesty};
use serde_json::json;

pub(crate) fn run(arguments: &HonestyArguments, printer: &Printer) -> Result<(), Error> {
    let config = HonestyConfig { seeds: arguments.seeds, pairs: arguments.pairs };
    if !arguments.json {
        printer.data(format!(
            "{} runs of 50 trials each; other verdict: than all trials of the same seed give",
            config.seeds
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
    let report = block_on(honesty(&config, &mut print_row))?;
    if arguments.json {
        let rows: Vec<_> = (report.stops.iter())
            .map(|row| {
                json!({
                    "true_rate": row.true_rate,
                    "threshold": row.threshold,
                    "seeds": row.seeds,
                    "other_verdicts": row.other_verdicts,
                    "saved": row.saved,
                })
            })
            .collect();
        let differences = report.differences;
        printer.json(&json!({"stops": rows, "pairs": report.pairs, "differences": differences}));
    } else {
        printer.data(format!(
            "identical targets, 20 cases × 3 trials: a difference was found in {} of {} pairs",
            report.differences, report.pairs
        ));
    }
    Ok(())
}
