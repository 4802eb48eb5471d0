//! A whole run over loopback HTTP, compared with a bare loop that makes the same calls.

use crate::provider::SimProcess;
use crate::scratch::Scratch;
use crate::{Error, bare, usage};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Configuration of the engine benchmark.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Path of the program `bakeoff`.
    pub program: PathBuf,
    /// Number of cases of the large run.
    pub cases: u32,
    /// Number of requests in flight.
    pub connections: u32,
    /// Latency of every answer in milliseconds.
    pub latency_ms: u32,
    /// Number of measurements; the medians are reported.
    pub rounds: u32,
}

/// Time and processor time of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeFigures {
    /// Seconds from start to end.
    pub seconds: f64,
    /// Seconds of processor time.
    pub cpu_seconds: f64,
}

/// Results of the engine benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineReport {
    /// Cases of the large run.
    pub cases: u32,
    /// Seconds that the latency alone would take.
    pub ideal_seconds: f64,
    /// `bakeoff run` as a separate process.
    pub run: TimeFigures,
    /// Bare loop.
    pub bare: TimeFigures,
    /// Peak memory of the large run.
    pub peak_bytes: u64,
    /// Cases of the small run, a tenth of the large one.
    pub few_cases: u32,
    /// Peak memory of the small run.
    pub peak_bytes_few: u64,
}

/// Runs the engine benchmark.
pub fn engine(config: &EngineConfig) -> Result<EngineReport, Error> {
    let folder = Scratch::new()?;
    let latency = config.latency_ms.to_string();
    let provider = SimProcess::start(&config.program, &["--latency-ms", &latency])?;
    // A fixed limit, because the benchmark measures the engine and not the discovery of limits.
    let limits = format!("strategy = \"fixed\", connections = {}", config.connections);
    let few_cases = (config.cases / 10).max(1);
    let few = folder.write_suite("few", few_cases, &provider.base_url, &limits)?;
    let many = folder.write_suite("many", config.cases, &provider.base_url, &limits)?;
    // Memory first: a child inherits the peak of this process, which the bare loop would increase.
    let run = |suite: &Path| run_suite(&config.program, suite);
    run(&few)?;
    let peak_bytes_few = usage::of_children().peak_bytes;
    let mut runs = vec![run(&many)?];
    let peak_bytes = usage::of_children().peak_bytes;
    let mut bares = Vec::new();
    for round in 0..config.rounds.max(1) {
        if round > 0 {
            runs.push(run(&many)?);
        }
        bares.push(run_bare(&provider.base_url, config)?);
    }
    let rounds = f64::from(config.cases.div_ceil(config.connections));
    Ok(EngineReport {
        cases: config.cases,
        ideal_seconds: rounds * f64::from(config.latency_ms) / 1e3,
        run: median(runs),
        bare: median(bares),
        peak_bytes,
        few_cases,
        peak_bytes_few,
    })
}

fn run_suite(program: &Path, suite: &Path) -> Result<TimeFigures, Error> {
    let before = usage::of_children().cpu;
    let started = Instant::now();
    let status = Command::new(program)
        .args(["run", "--no-cache", "--quiet", "--out"])
        .arg(suite.join("runs"))
        .arg(suite)
        .status()
        .map_err(|source| Error::Io { action: "run", path: program.to_owned(), source })?;
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        return Err(Error::Run(status));
    }
    let cpu = usage::of_children().cpu.saturating_sub(before);
    Ok(TimeFigures { seconds, cpu_seconds: cpu.as_secs_f64() })
}

fn run_bare(base_url: &str, config: &EngineConfig) -> Result<TimeFigures, Error> {
    let before = usage::of_self().cpu;
    let started = Instant::now();
    bare::run(base_url, config.cases, config.connections)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu: Duration = usage::of_self().cpu.saturating_sub(before);
    Ok(TimeFigures { seconds, cpu_seconds: cpu.as_secs_f64() })
}

fn median(mut figures: Vec<TimeFigures>) -> TimeFigures {
    let mut middle = |part: fn(&TimeFigures) -> f64| {
        figures.sort_by(|one, other| part(one).total_cmp(&part(other)));
        figures.get(figures.len() / 2).map_or(0.0, part)
    };
    TimeFigures { seconds: middle(|f| f.seconds), cpu_seconds: middle(|f| f.cpu_seconds) }
}

/// Returns the request body of the run for a case number, so that the bare loop sends the same.
pub(crate) fn request_body(number: u32) -> String {
    let prompt = format!("Say the word w{number} and nothing else.");
    json!({"model": "sim/echo", "messages": [{"role": "user", "content": prompt}]}).to_string()
}
