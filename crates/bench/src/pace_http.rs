//! The default strategy over loopback HTTP, beside the best that anybody could do.
//!
//! Providers of the benchmark in virtual time, scaled so that a run takes seconds: what the clock,
//! the network and the whole engine add to it shows here.

use crate::Error;
use crate::provider::Provider;
use crate::scratch::Scratch;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What to measure.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The program `bakeoff`.
    pub program: PathBuf,
    /// Calls of each run.
    pub calls: u32,
}

/// One provider, and how the calls went.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRow {
    /// Which provider.
    pub profile: &'static str,
    /// Seconds that the best scheduler would take.
    pub ideal_seconds: f64,
    /// Seconds that it took, with starting the program.
    pub seconds: f64,
    /// Rejections (429) per answered call.
    pub rejections_per_success: f64,
    /// Calls that were never answered.
    pub lost: u64,
}

impl HttpRow {
    /// How near to the best it came.
    pub fn efficiency(&self) -> f64 {
        self.ideal_seconds / self.seconds
    }

    /// What stands above the rows.
    pub fn header() -> String {
        format!(
            "{:<20} {:>8} {:>8} {:>11} {:>12} {:>5}",
            "over HTTP", "ideal s", "seconds", "efficiency", "rejections", "lost"
        )
    }
}

impl fmt::Display for HttpRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<20} {:>8.2} {:>8.2} {:>9.1} % {:>12.3} {:>5}",
            self.profile,
            self.ideal_seconds,
            self.seconds,
            100.0 * self.efficiency(),
            self.rejections_per_success,
            self.lost
        )
    }
}

/// A provider and the best time for so many calls.
struct Row {
    name: &'static str,
    profile: String,
    ideal_seconds: f64,
}

/// Seconds that an answer takes.
const LATENCY: f64 = 0.3;
/// Requests in flight that are allowed.
const CAP: u32 = 30;
/// Requests per second that are allowed, and at once.
const RATE: f64 = 50.0;
const BURST: u32 = 5;
/// Seconds that an outage lasts.
const OUTAGE: f64 = 2.0;

fn rows(calls: u32) -> [Row; 3] {
    let latency = format!("latency = {{ kind = \"fixed\", ms = {} }}", LATENCY * 1e3);
    // All places are taken in waves, the last of which need not be full.
    let waves = f64::from(calls.div_ceil(CAP)) * LATENCY;
    // In the middle of the work, whenever that is.
    let from = (waves / 2.0).max(0.1);
    let rate = f64::from(calls.saturating_sub(BURST)) / RATE + LATENCY;
    [
        Row {
            name: "cap 30",
            profile: format!("{latency}\nconcurrency = {CAP}"),
            ideal_seconds: waves,
        },
        Row {
            name: "50/s burst 5",
            profile: format!("{latency}\nrequests = {{ rate_per_s = {RATE}, burst = {BURST} }}"),
            ideal_seconds: rate,
        },
        Row {
            name: "cap 30, outage 2 s",
            profile: format!(
                "{latency}\nconcurrency = {CAP}\noutages = [{{ from_s = {from}, to_s = {} }}]",
                from + OUTAGE
            ),
            ideal_seconds: waves + OUTAGE,
        },
    ]
}

/// Measures, one provider after the other.
pub fn over_http(config: &HttpConfig) -> Result<Vec<HttpRow>, Error> {
    rows(config.calls).iter().map(|row| measure(config, row)).collect()
}

fn measure(config: &HttpConfig, row: &Row) -> Result<HttpRow, Error> {
    let folder = Scratch::new()?;
    let text = format!("[[profile]]\nname = \"{}\"\n{}\n", row.name, row.profile);
    let profile = folder.write("profile.toml", &text)?;
    let provider = Provider::start(&config.program, &["--profile", &profile.to_string_lossy()])?;
    let limits = "strategy = \"auto\"";
    let suite = folder.write_suite("calls", config.calls, &provider.base_url, limits)?;
    let started = Instant::now();
    let answered = run(&config.program, &suite)?;
    let seconds = started.elapsed().as_secs_f64();
    let rejected = provider.stats()?["refused"]["429"].as_u64().unwrap_or(0);
    Ok(HttpRow {
        profile: row.name,
        ideal_seconds: row.ideal_seconds,
        seconds,
        rejections_per_success: rejected as f64 / answered.max(1) as f64,
        lost: u64::from(config.calls).saturating_sub(answered),
    })
}

/// Runs the suite; returns how many calls were answered as they should be.
fn run(program: &Path, suite: &Path) -> Result<u64, Error> {
    let output = Command::new(program)
        .args(["run", "--no-cache", "--no-memory", "--json", "--out"])
        .arg(suite.join("runs"))
        .arg(suite)
        .stderr(Stdio::null())
        .output()
        .map_err(|source| Error::Io { action: "run", path: program.to_owned(), source })?;
    // Whether trials are missing is a figure here and no error.
    if !matches!(output.status.code(), Some(0 | 1 | 3)) {
        return Err(Error::Run(output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    let done: Value =
        serde_json::from_str(last).map_err(|error| Error::Summary(error.to_string()))?;
    let passed = &done["summary"]["targets"][0]["pass_count"];
    passed.as_u64().ok_or_else(|| Error::Summary(last.chars().take(200).collect()))
}
