//! `bakeoff bench map`.

use super::{MEGABYTE, measured, program};
use crate::arguments::MapBenchArguments;
use crate::printer::Printer;
use bakeoff_bench::map::{MapConfig, MapReport, map};
use bakeoff_core::ExitCode;
use serde_json::{Value, json};

pub(crate) fn run(arguments: &MapBenchArguments, printer: &Printer) -> ExitCode {
    let program = match program(printer) {
        Ok(program) => program,
        Err(code) => return code,
    };
    let &MapBenchArguments { attacked, seeds, rows, json } = arguments;
    let config = MapConfig { program, attacked, seeds, rows };
    let mut tell = |what: &str| printer.talk(format!("measuring: {what}"));
    let report = match measured(printer, map(&config, &mut tell)) {
        Ok(report) => report,
        Err(code) => return code,
    };
    if json {
        printer.json(&as_json(&report));
    } else {
        as_lines(&report, &config).iter().for_each(|line| printer.data(line));
    }
    ExitCode::Passed
}

fn as_lines(report: &MapReport, config: &MapConfig) -> Vec<String> {
    let attack = &report.attack;
    let mut lines = vec![
        format!(
            "{} rows, {} times, through a model that does everything wrong",
            config.attacked, config.seeds
        ),
        format!("rows in {}, rows out {}, misplaced {}", attack.rows, attack.out, attack.misplaced),
        format!(
            "answers of another row {}, own answers {}, error rows {}",
            attack.wrong, attack.answered, attack.errors
        ),
        format!(
            "requests {}: {:.1} × those that would do if nothing were wrong",
            attack.requests,
            attack.requests as f64 / attack.fewest.max(1) as f64
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
            "fewest_requests": attack.fewest,
        },
        "packs": packs,
        "loads": loads,
    })
}
