//! `bakeoff bench`.

mod pace;

use crate::arguments::{Bench, BenchArguments, EngineArguments};
use crate::printer::{Printer, chain};
use bakeoff_bench::{EngineConfig, EngineReport, engine};
use bakeoff_core::ExitCode;
use serde_json::json;

pub(crate) fn run(arguments: &BenchArguments, printer: &Printer) -> ExitCode {
    match &arguments.bench {
        Bench::Engine(arguments) => run_engine(arguments, printer),
        Bench::Pace(arguments) => pace::run(arguments, printer),
    }
}

fn run_engine(arguments: &EngineArguments, printer: &Printer) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            printer.error(format!("cannot find this program: {error}"), None);
            return ExitCode::Internal;
        }
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
