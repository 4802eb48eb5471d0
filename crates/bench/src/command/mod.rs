//! One module per benchmark: runs it and prints its figures.

mod honesty;
mod map;
mod pace;
mod race;
mod select;
mod world;

use crate::arguments::{Arguments, Benchmark, EngineArguments, FlightArguments, PermitsArguments};
use crate::printer::Printer;
use crate::program::locate;
use bakeoff_bench::{
    EngineConfig, EngineReport, Error, FlightConfig, FlightReport, PermitConfig, PermitsReport,
    engine, flight, permits,
};
use bakeoff_core::ExitCode;
use serde_json::json;
use std::path::PathBuf;

/// Runs the benchmark and returns the exit code.
pub(crate) fn run(arguments: &Arguments, printer: &Printer) -> ExitCode {
    let result = match &arguments.benchmark {
        Benchmark::Engine(own) => locate(arguments).and_then(|it| run_engine(own, it, printer)),
        Benchmark::Pace(own) if own.http => {
            locate(arguments).and_then(|it| pace::run_http(own, it, printer))
        }
        Benchmark::Pace(own) => return pace::run(own, printer),
        Benchmark::Permits(own) => run_permits(own, printer),
        Benchmark::Flight(own) => locate(arguments).and_then(|it| run_flight(own, it, printer)),
        Benchmark::Honesty(own) => honesty::run(own, printer),
        Benchmark::Map(own) => locate(arguments).and_then(|it| map::run(own, it, printer)),
        Benchmark::Race(own) => race::run(own, printer),
        Benchmark::Select(own) => return select::run(own, printer),
        Benchmark::World(own) => match locate(arguments) {
            Ok(program) => return world::run(own, program, printer),
            Err(error) => Err(error),
        },
    };
    match result {
        Ok(()) => ExitCode::Passed,
        Err(error) => printer.failure(&error),
    }
}

/// Runs an asynchronous benchmark to its end.
fn block_on<T>(benchmark: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Io { action: "start", path: "tokio".into(), source })?;
    runtime.block_on(benchmark)
}

fn run_permits(arguments: &PermitsArguments, printer: &Printer) -> Result<(), Error> {
    let config = PermitConfig { waiting: arguments.waiting, permits: arguments.permits };
    let report = permits(&config)?;
    if arguments.json {
        printer.json(&permits_json(&report, &config));
    } else {
        permits_lines(&report, &config).iter().for_each(|line| printer.data(line));
    }
    Ok(())
}

fn permits_lines(report: &PermitsReport, config: &PermitConfig) -> Vec<String> {
    let semaphore = report.semaphore_micros;
    let mut lines = vec![
        format!("{} waiting, {} permits: microseconds of CPU each", config.waiting, config.permits),
        format!("{:<16} {:>10} {:>8} {:>17}", "strategy", "scheduler", "pool", "pool / semaphore"),
    ];
    lines.extend(report.rows.iter().map(|row| {
        let (scheduler, pool) = (row.scheduler_micros, row.pool_micros);
        let name = row.strategy.as_str();
        format!("{name:<16} {scheduler:>10.2} {pool:>8.2} {:>17.1}", pool / semaphore)
    }));
    lines.push(format!("{:<16} {:>10} {semaphore:>8.2} {:>17.1}", "tokio semaphore", "", 1.0));
    lines
}

fn permits_json(report: &PermitsReport, config: &PermitConfig) -> serde_json::Value {
    let rows: Vec<_> = (report.rows.iter())
        .map(|row| {
            json!({
                "strategy": row.strategy.as_str(),
                "scheduler_micros": row.scheduler_micros,
                "pool_micros": row.pool_micros,
                "pool_to_semaphore": row.pool_micros / report.semaphore_micros,
            })
        })
        .collect();
    json!({
        "waiting": config.waiting,
        "permits": config.permits,
        "semaphore_micros": report.semaphore_micros,
        "strategies": rows,
    })
}

fn run_flight(
    arguments: &FlightArguments,
    program: PathBuf,
    printer: &Printer,
) -> Result<(), Error> {
    let (requests, latency_ms) = (arguments.requests, arguments.latency_ms);
    let report = flight(&FlightConfig { program, requests, latency_ms })?;
    if arguments.json {
        printer.json(&flight_json(&report, latency_ms));
    } else {
        flight_lines(&report, latency_ms).iter().for_each(|line| printer.data(line));
    }
    Ok(())
}

fn flight_lines(report: &FlightReport, latency_ms: u32) -> Vec<String> {
    vec![
        format!("{} requests at once, {latency_ms} ms each", report.requests),
        format!("maximum in flight at the provider: {}", report.max_in_flight),
        format!("answered: {} of {} received requests", report.answered, report.received),
        format!("peak memory of the run: {:.0} MB", report.peak_bytes as f64 / MEGABYTE),
        format!("wall time: {:.1} s", report.wall_ms as f64 / 1e3),
    ]
}

fn flight_json(report: &FlightReport, latency_ms: u32) -> serde_json::Value {
    json!({
        "requests": report.requests,
        "latency_ms": latency_ms,
        "most_in_flight": report.max_in_flight,
        "answered": report.answered,
        "seen": report.received,
        "peak_bytes": report.peak_bytes,
        "wall_seconds": report.wall_ms as f64 / 1e3,
    })
}

fn run_engine(
    arguments: &EngineArguments,
    program: PathBuf,
    printer: &Printer,
) -> Result<(), Error> {
    let config = EngineConfig {
        program,
        cases: arguments.cases,
        connections: arguments.connections,
        latency_ms: arguments.latency_ms,
        rounds: arguments.rounds,
    };
    printer.message("measuring; this takes a minute");
    let report = engine(&config)?;
    if arguments.json {
        printer.json(&as_json(&report));
    } else {
        as_lines(&report, &config).iter().for_each(|line| printer.data(line));
    }
    Ok(())
}

const MEGABYTE: f64 = 1024.0 * 1024.0;

fn as_lines(report: &EngineReport, config: &EngineConfig) -> Vec<String> {
    let line = |name: &str, figures: &bakeoff_bench::TimeFigures| {
        format!(
            "{name:<14} {:>8.2} {:>9.2} × {:>8.2} {:>13.3}",
            figures.seconds,
            figures.seconds / report.ideal_seconds,
            figures.cpu_seconds,
            figures.cpu_seconds * 1e3 / f64::from(report.cases),
        )
    };
    vec![
        format!(
            "{} cases, {} in flight, {} ms each: ideal {:.2} s",
            report.cases, config.connections, config.latency_ms, report.ideal_seconds
        ),
        format!(
            "{:<14} {:>8} {:>11} {:>8} {:>13}",
            "", "seconds", "of ideal", "CPU s", "CPU ms/case"
        ),
        line("bakeoff run", &report.run),
        line("bare reqwest", &report.bare),
        format!("CPU: {:.2} × the bare loop", report.run.cpu_seconds / report.bare.cpu_seconds),
        format!(
            "peak memory: {:.1} MB; {:.2} × that of {} cases ({:.1} MB)",
            report.peak_bytes as f64 / MEGABYTE,
            report.peak_bytes as f64 / report.peak_bytes_few as f64,
            report.few_cases,
            report.peak_bytes_few as f64 / MEGABYTE,
        ),
    ]
}

fn as_json(report: &EngineReport) -> serde_json::Value {
    let figures = |figures: &bakeoff_bench::TimeFigures| json!({"seconds": figures.seconds, "cpu_seconds": figures.cpu_seconds});
    json!({
        "cases": report.cases,
        "ideal_seconds": report.ideal_seconds,
        "run": figures(&report.run),
        "bare": figures(&report.bare),
        "cpu_ratio": report.run.cpu_seconds / report.bare.cpu_seconds,
        "peak_bytes": report.peak_bytes,
        "few_cases": report.few_cases,
        "peak_bytes_few": report.peak_bytes_few,
    })
}
