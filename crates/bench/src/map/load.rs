//! Whole jobs in separate processes.

use super::{TASK, write_rows};
use crate::provider::SimProcess;
use crate::scratch::Scratch;
use crate::{Error, usage};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Latency of answers in milliseconds and concurrency limit in the comparison of pack sizes.
const LATENCY_MS: &str = "20";
const CONNECTIONS: &str = "16";

/// Time and memory of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadRow {
    /// Number of rows.
    pub rows: u32,
    /// Duration in seconds.
    pub seconds: f64,
    /// Peak memory.
    pub peak_bytes: u64,
}

/// Requests and time of a job with one pack size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PackRow {
    /// Items per request.
    pub pack: u32,
    /// Number of rows.
    pub rows: u32,
    /// Requests received by the provider.
    pub requests: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Measures a job with an in-process model, to exclude the cost of HTTP.
pub(super) fn measure(program: &Path, folder: &Scratch, rows: u32) -> Result<LoadRow, Error> {
    let seconds = run_job(program, folder, rows, &["--model", "sim/map", "--pack", "20"])?;
    Ok(LoadRow { rows, seconds, peak_bytes: usage::of_children().peak_bytes })
}

/// Measures jobs over loopback HTTP with different pack sizes.
pub(super) fn packs(program: &Path, folder: &Scratch, rows: u32) -> Result<Vec<PackRow>, Error> {
    let mut results = Vec::new();
    for pack in [1, 5, 20] {
        let provider = SimProcess::start(program, &["--latency-ms", LATENCY_MS])?;
        let suite = format!(
            "[models.m]\nprovider = \"openai\"\nmodel = \"sim/map\"\nbase_url = \"{}\"\n",
            provider.base_url
        );
        let suite = folder.write("models.toml", &suite)?.display().to_string();
        let items = pack.to_string();
        let arguments = [
            ["--model", "m"],
            ["--suite", &suite],
            ["--pack", &items],
            ["--max-connections", CONNECTIONS],
        ];
        let seconds = run_job(program, folder, rows, arguments.as_flattened())?;
        let requests = provider.stats()?["requests"].as_u64().unwrap_or(0);
        results.push(PackRow { pack, rows, requests, seconds });
    }
    Ok(results)
}

/// Runs a job and returns its duration in seconds.
fn run_job(program: &Path, folder: &Scratch, rows: u32, more: &[&str]) -> Result<f64, Error> {
    let input = write_rows(folder, rows)?;
    let task = folder.write("task.toml", TASK)?;
    let started = Instant::now();
    let status = Command::new(program)
        .args(["map", "--no-cache", "--no-memory", "--quiet", "--force", "--task"])
        .arg(task)
        .arg("--out")
        .arg(folder.folder().join("out.jsonl"))
        .arg(input)
        .args(more)
        .status()
        .map_err(|source| Error::Io { action: "run", path: program.to_owned(), source })?;
    match status.success() {
        true => Ok(started.elapsed().as_secs_f64()),
        false => Err(Error::Run(status)),
    }
}
