//! `bakeoff-bench map`.

use super::{MEGABYTE, block_on};
use crate::arguments::MapArguments;
use crate::printer::Printer;
use bakeoff_bench::Error;
use bakeoff_bench::map::{MapConfig, MapReport, map};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(crate) fn run(
    arguments: &MapArguments,
    program: PathBuf,
    printer: &Printer,
) -> Result<(), Error> {
    let &MapArguments { attacked, seeds, rows, json } = arguments;
    let config = MapConfig { program, attacked, seeds, rows };
    let mut announce = |stage: &str| printer.message(format!("measuring: {stage}"));
    let report = block_on(map(&config, &mut announce))?;
    if json {
        printer.json(&as_json(&report));
    } else {
        as_lines(&report, &config).iter().for_each(|line| printer.data(line));
    }
    Ok(())
}

fn as_lines(report: &MapReport, config: &MapConfig) -> Vec<String> {
    let attack = &report.attack;
    let mut lines = vec![
        format!(
            "{} rows, {} seeds, through a model with every kind of reply fault",
            config.attacked, config.seeds
        ),
        format!("rows in {}, rows out {}, misplaced {}", attack.rows, attack.out, attack.misplaced),
        format!(
            "answers of another row {}, own answers {}, error rows {}",
            attack.wrong, attack.answered, attack.errors
        ),
        format!(
            "requests {}: {:.1} × the number needed without faults",
            attack.requests,
            attack.requests as f64 / attack.min_requests.max(1) as f64
        ),
        String::new(),
        "pack   rows  requests  seconds  rows/s".to_owned(),
    ];
    lines.extend(report.packs.iter().map(|row| {
        let per_second = f64::from(row.rows) / row.seconds;
        let (pack, rows, requests, seconds) = (row.pack, row.rows, row.requests, row.seconds);
        format!("{pack:>4}  {rows:>5}  {requests:>8}  {seconds:>7.1}  {per_second:>6.0}")
    }));
    lines.push(String::new());
    lines.push("   rows  seconds  memory MB".to_owned());
    lines.extend(report.loads.iter().map(|row| {
        let megabytes = row.peak_bytes as f64 / MEGABYTE;
        format!("{:>7}  {:>7.1}  {megabytes:>9.1}", row.rows, row.seconds)
    }));
    lines
}

fn as_json(report: &MapReport) -> Value {
    let attack = &report.attack;
    let packs: Vec<Value> = (report.packs.iter())
        .map(|row| {
            json!({
                "pack": row.pack,
                "rows": row.rows,
                "requests": row.requests,
                "seconds": row.seconds,
            })
        })
        .collect();
    let loads: Vec<Value> = (report.loads.iter())
        .map(
            |row| json!({ "rows": row.rows, "seconds": row.seconds, "peak_bytes": row.peak_bytes }),
        )
        .collect();
    json!({
        "attack": {
            "rows": attack.rows,
            "out": attack.out,
            "misplaced": attack.misplaced,
            "wrong": attack.wrong,
            "answered": attack.answered,
            "errors": attack.errors,
            "requests": attack.requests,
            "fewest_requests": attack.min_requests,
        },
        "packs": packs,
        "loads": loads,
    })
}
