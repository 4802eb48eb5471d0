//! `bakeoff bench`.

mod honesty;
mod map;
mod pace;
mod race;
mod select;

use crate::arguments::{Bench, BenchArguments, EngineArguments, FlightArguments, PermitsArguments};
use crate::printer::{Printer, chain};
use bakeoff_bench::{
    EngineConfig, EngineReport, FlightConfig, FlightReport, PermitConfig, PermitsReport, engine,
    flight, permits,
};
use bakeoff_core::ExitCode;
use serde_json::json;
use std::path::PathBuf;

pub(crate) fn run(arguments: &BenchArguments, printer: &Printer) -> ExitCode {
    match &arguments.bench {
        Bench::Engine(arguments) => run_engine(arguments, printer),
        Bench::Pace(arguments) => pace::run(arguments, printer),
        Bench::Permits(arguments) => run_permits(arguments, printer),
        Bench::Flight(arguments) => run_flight(arguments, printer),
        Bench::Honesty(arguments) => honesty::run(arguments, printer),
        Bench::Map(arguments) => map::run(arguments, printer),
        Bench::Race(arguments) => race::run(arguments, printer),
        Bench::Select(arguments) => select::run(arguments, printer),
    }
}

/// The program itself, which the measured processes run.
fn program(printer: &Printer) -> Result<PathBuf, ExitCode> {
    std::env::current_exe().map_err(|error| {
        printer.error(format!("cannot find this program: {error}"), None);
        ExitCode::Internal
    })
}

/// What a measurement finds; says why when it cannot.
fn measured<T>(
    printer: &Printer,
    measurement: impl Future<Output = Result<T, bakeoff_bench::Error>>,
) -> Result<T, ExitCode> {
    super::block_on(printer, measurement)?.map_err(|error| {
        printer.error(chain(&error), None);
        ExitCode::Internal
    })
}

fn run_permits(arguments: &PermitsArguments, printer: &Printer) -> ExitCode {
    let config = PermitConfig { waiting: arguments.waiting, permits: arguments.permits };
    match permits(&config) {
        Ok(report) if arguments.json => printer.json(&permits_json(&report, &config)),
        Ok(report) => {
            permits_lines(&report, &config).iter().for_each(|line| printer.data(line));
        }
        Err(error) => {
            printer.error(chain(&error), None);
            return ExitCode::Internal;
        }
    }
    ExitCode::Passed
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

fn run_flight(arguments: &FlightArguments, printer: &Printer) -> ExitCode {
    let program = match program(printer) {
        Ok(program) => program,
        Err(code) => return code,
    };
    let (requests, latency_ms) = (arguments.requests, arguments.latency_ms);
    match flight(&FlightConfig { program, requests, latency_ms }) {
        Ok(report) if arguments.json => printer.json(&flight_json(&report, latency_ms)),
        Ok(report) => {
            flight_lines(&report, latency_ms).iter().for_each(|line| printer.data(line));
        }
        Err(error) => {
            printer.error(chain(&error), None);
            return ExitCode::Internal;
        }
    }
    ExitCode::Passed
}

fn flight_lines(report: &FlightReport, latency_ms: u32) -> Vec<String> {
    vec![
        format!("{} requests at once, {latency_ms} ms each", report.requests),
        format!("most in flight at the provider: {}", report.most_in_flight),
        format!("answered: {} of {} that it saw", report.answered, report.seen),
        format!("peak memory of the run: {:.0} MB", report.peak_bytes as f64 / MEGABYTE),
        format!("wall time: {:.1} s", report.wall_ms as f64 / 1e3),
    ]
}

fn flight_json(report: &FlightReport, latency_ms: u32) -> serde_json::Value {
    json!({
        "requests": report.requests,
        "latency_ms": latency_ms,
        "most_in_flight": report.most_in_flight,
        "answered": report.answered,
        "seen": report.seen,
        "peak_bytes": report.peak_bytes,
        "wall_seconds": report.wall_ms as f64 / 1e3,
    })
}

fn run_engine(arguments: &EngineArguments, printer: &Printer) -> ExitCode {
    let program = match program(printer) {
        Ok(program) => program,
        Err(code) => return code,
    };
    let config = EngineConfig {
        program,
        cases: arguments.cases,
        connections: arguments.connections,
        latency_ms: arguments.latency_ms,
        rounds: arguments.rounds,
    };
    printer.talk("measuring; this takes a minute");
    match engine(&config) {
        Ok(report) if arguments.json => {
            printer.json(&as_json(&report));
            ExitCode::Passed
        }
        Ok(report) => {
            as_lines(&report, &config).iter().for_each(|line| printer.data(line));
            ExitCode::Passed
        }
        Err(error) => {
            printer.error(chain(&error), None);
            ExitCode::Internal
        }
    }
}

const MEGABYTE: f64 = 1024.0 * 1024.0;

fn as_lines(report: &EngineReport, config: &EngineConfig) -> Vec<String> {
    let line = |name: &str, figures: &bakeoff_bench::Figures| {
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
    let figures = |figures: &bakeoff_bench::Figures| json!({"seconds": figures.seconds, "cpu_seconds": figures.cpu_seconds});
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
