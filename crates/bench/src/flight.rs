//! Very many requests in flight at once, over loopback HTTP.

use crate::provider::Provider;
use crate::scratch::Scratch;
use crate::{Error, usage};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// What to measure.
#[derive(Debug, Clone)]
pub struct FlightConfig {
    /// The program `bakeoff`.
    pub program: PathBuf,
    /// Requests, all in flight at once.
    pub requests: u32,
    /// Milliseconds that every answer takes: longer than sending all requests does.
    pub latency_ms: u32,
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightReport {
    /// Requests that were made.
    pub requests: u32,
    /// The most in flight that the provider saw.
    pub most_in_flight: u64,
    /// Requests that the provider answered.
    pub answered: u64,
    /// Requests that it saw, with those that were made again.
    pub seen: u64,
    /// Peak memory of the run.
    pub peak_bytes: u64,
    /// Milliseconds from start to end of the run.
    pub wall_ms: u64,
}

/// Measures.
pub fn flight(config: &FlightConfig) -> Result<FlightReport, Error> {
    let folder = Scratch::new()?;
    let latency = config.latency_ms.to_string();
    let provider = Provider::start(&config.program, &["--latency-ms", &latency])?;
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
    // The provider has not ended yet, so that the run is the only child that counts.
    let peak_bytes = usage::of_children().peak_bytes;
    let stats = provider.stats()?;
    let count = |name: &str| stats[name].as_u64().unwrap_or(0);
    Ok(FlightReport {
        requests: config.requests,
        most_in_flight: count("peak_in_flight"),
        answered: count("answered"),
        seen: count("requests"),
        peak_bytes,
        wall_ms,
    })
}
