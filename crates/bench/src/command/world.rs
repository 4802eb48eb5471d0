//! `bakeoff-bench world`.

use crate::arguments::WorldArguments;
use crate::printer::Printer;
use bakeoff_bench::Error;
use bakeoff_bench::world::{World, WorldConfig, WorldEvent, WorldResult, WorldStrategy, row_names};
use bakeoff_core::ExitCode;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) fn run(arguments: &WorldArguments, program: PathBuf, printer: &Printer) -> ExitCode {
    let config = WorldConfig {
        program,
        rows: arguments.rows.clone(),
        mixes: arguments.mixes.map(|count| (count, arguments.seed)),
        strategies: arguments.strategies.clone(),
        scale: arguments.scale,
    };
    let world = match World::new(config) {
        Ok(world) => world,
        Err(error @ Error::UnknownRow(_)) => {
            let hint = format!("rows: {}", row_names().join(", "));
            return printer.usage_error(&error.to_string(), Some(&hint));
        }
        Err(error) => return printer.failure(&error),
    };
    printer
        .message(format!("measuring; this takes at least {}", duration(world.estimated_seconds())));
    if !arguments.json {
        printer.data(header());
    }
    let mut results = Vec::new();
    let measured = world.run(&mut |event| match event {
        WorldEvent::Started { row, strategy, is_search: true } => {
            printer.message(format!("{row}: searching for the best fixed limit: {strategy}"));
        }
        WorldEvent::Started { row, strategy, is_search: false } => {
            printer.message(format!("{row}: {strategy}"));
        }
        WorldEvent::Skipped { row, reason } => {
            printer.message(format!("skipped {row}: {reason}"));
        }
        WorldEvent::Measured(result) => {
            if arguments.json {
                printer.json(&as_json(&result));
            } else {
                printer.data(line(&result));
            }
            results.push(result);
        }
    });
    if let Err(error) = measured {
        return printer.failure(&error);
    }
    if !arguments.json && !results.is_empty() {
        summary_lines(&results).iter().for_each(|line| printer.data(line));
    }
    ExitCode::Passed
}

/// Returns a duration in minutes, or in seconds if it is short.
fn duration(seconds: f64) -> String {
    if seconds < 100.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

fn header() -> String {
    format!(
        "{:<28} {:>9} {:>8}  {:<10} {:>9} {:>11} {:>11} {:>6} {:>7}",
        "row",
        "reference",
        "seconds",
        "strategy",
        "seconds",
        "efficiency",
        "rejections",
        "lost",
        "p50 ms"
    )
}

fn line(result: &WorldResult) -> String {
    // A stopped run would have taken longer.
    let stopped = if result.is_stopped { ">" } else { "" };
    let p50 = result.latency_p50_ms.map_or("-".to_owned(), |ms| ms.to_string());
    let efficiency = if result.efficiency.is_finite() {
        format!("{:.1} %", 100.0 * result.efficiency)
    } else {
        "-".to_owned()
    };
    format!(
        "{:<28} {:>9} {:>8.1}  {:<10} {:>9} {:>11} {:>11.3} {:>6} {:>7}",
        result.row,
        result.reference,
        result.reference_seconds,
        result.strategy,
        format!("{stopped}{:.1}", result.seconds),
        efficiency,
        result.rejections_per_success,
        result.lost,
        p50
    )
}

/// Returns one line per strategy with its figures over all rows. In the mean, an efficiency above 100 % does not
/// make up for another one below.
fn summary_lines(results: &[WorldResult]) -> Vec<String> {
    let mut strategies: Vec<WorldStrategy> = Vec::new();
    for result in results {
        if !strategies.contains(&result.strategy) {
            strategies.push(result.strategy);
        }
    }
    let mut lines = vec![
        String::new(),
        format!(
            "{:<10} {:>5} {:>8} {:>8} {:>11} {:>6}",
            "strategy", "rows", "mean", "worst", "rejections", "lost"
        ),
    ];
    lines.extend(strategies.into_iter().map(|strategy| {
        let own: Vec<&WorldResult> = (results.iter())
            .filter(|result| result.strategy == strategy && result.efficiency.is_finite())
            .collect();
        let mean = |part: fn(&WorldResult) -> f64| {
            own.iter().map(|result| part(result)).sum::<f64>() / own.len().max(1) as f64
        };
        let worst = own.iter().map(|result| result.efficiency).fold(f64::INFINITY, f64::min);
        format!(
            "{strategy:<10} {:>5} {:>6.1} % {:>6.1} % {:>11.3} {:>6}",
            own.len(),
            100.0 * mean(|result| result.efficiency.min(1.0)),
            100.0 * worst,
            mean(|result| result.rejections_per_success),
            own.iter().map(|result| result.lost).sum::<u64>()
        )
    }));
    lines
}

fn as_json(result: &WorldResult) -> Value {
    json!({
        "row": result.row,
        "profile": result.profile,
        "calls": result.calls,
        "reference": result.reference,
        "reference_seconds": result.reference_seconds,
        "strategy": result.strategy.to_string(),
        "seconds": result.seconds,
        "efficiency": result.efficiency,
        "rejections_per_success": result.rejections_per_success,
        "lost": result.lost,
        "latency_p50_ms": result.latency_p50_ms,
        "stopped": result.is_stopped,
    })
}
