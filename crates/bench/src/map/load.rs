//! Whole jobs, each a process of its own.

use super::{TASK, write_rows};
use crate::provider::Provider;
use crate::scratch::Scratch;
use crate::{Error, usage};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Milliseconds that every answer takes, and requests at once, where packs are compared.
const LATENCY_MS: &str = "20";
const CONNECTIONS: &str = "16";

/// What a job with so many rows took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadRow {
    /// Rows.
    pub rows: u32,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Peak memory.
    pub peak_bytes: u64,
}

/// What rows took in packs of that size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PackRow {
    /// Items per request.
    pub pack: u32,
    /// Rows.
    pub rows: u32,
    /// Requests that the provider saw.
    pub requests: u64,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// A job in the process of the simulated model, so that nothing else takes time.
pub(super) fn measure(program: &Path, folder: &Scratch, rows: u32) -> Result<LoadRow, Error> {
    let seconds = job(program, folder, rows, &["--model", "sim/map", "--pack", "20"])?;
    Ok(LoadRow { rows, seconds, peak_bytes: usage::of_children().peak_bytes })
}

/// Jobs over loopback HTTP.
pub(super) fn packs(program: &Path, folder: &Scratch, rows: u32) -> Result<Vec<PackRow>, Error> {
    let mut measured = Vec::new();
    for pack in [1, 5, 20] {
        let provider = Provider::start(program, &["--latency-ms", LATENCY_MS])?;
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
        let seconds = job(program, folder, rows, arguments.as_flattened())?;
        let requests = provider.stats()?["requests"].as_u64().unwrap_or(0);
        measured.push(PackRow { pack, rows, requests, seconds });
    }
    Ok(measured)
}

/// Seconds that a job takes.
fn job(program: &Path, folder: &Scratch, rows: u32, more: &[&str]) -> Result<f64, Error> {
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
