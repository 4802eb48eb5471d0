//! Thousands of requests in flight over loopback HTTP.

use crate::provider::SimProcess;
use crate::scratch::Scratch;
use crate::{Error, usage};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Configuration of the flight benchmark.
#[derive(Debug, Clone)]
pub struct FlightConfig {
    /// Path of the program `bakeoff`.
    pub program: PathBuf,
    /// Number of requests, all in flight at once.
    pub requests: u32,
    /// Latency of every answer in milliseconds; longer than it takes to send all requests.
    pub latency_ms: u32,
}

/// Results of the flight benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightReport {
    /// Number of calls.
    pub requests: u32,
    /// Maximum number of requests in flight at the provider.
    pub max_in_flight: u64,
    /// Requests answered by the provider.
    pub answered: u64,
    /// Requests received by the provider, including retries.
    pub received: u64,
    /// Peak memory of the run.
    pub peak_bytes: u64,
    /// Duration of the run in milliseconds.
    pub wall_ms: u64,
}

/// Runs the flight benchmark.
pub fn flight(config: &FlightConfig) -> Result<FlightReport, Error> {
    let folder = Scratch::new()?;
    let latency = config.latency_ms.to_string();
    let provider = SimProcess::start(&config.program, &["--latency-ms", &latency])?;
    let limits = format!("strategy = \"fixed\", connections = {}", config.requests);
    let suite = folder.write_suite("flight", config.requests, &provider.base_url, &limits)?;
    let started = Instant::now();
    let status = Command::new(&config.program)
        .args(["run", "--no-cache", "--no-memory", "--quiet", "--out"])
        .arg(suite.join("runs"))
        .arg(&suite)
        .status()
        .map_err(|source| Error::Io { action: "run", path: config.program.clone(), source })?;
    let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if !status.success() {
        return Err(Error::Run(status));
    }
    // The provider is still running, so the run is the only finished child.
    let peak_bytes = usage::of_children().peak_bytes;
    let stats = provider.stats()?;
    let count = |name: &str| stats[name].as_u64().unwrap_or(0);
    Ok(FlightReport {
        requests: config.requests,
        max_in_flight: count("peak_in_flight"),
        answered: count("answered"),
        received: count("requests"),
        peak_bytes,
        wall_ms,
    })
}
