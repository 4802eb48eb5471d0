//! The default strategy over loopback HTTP, compared with the optimum.
//!
//! Uses providers of the virtual-time benchmark, scaled so that a run takes seconds. The results include the
//! overhead of the clock, the network and the whole engine.

use crate::Error;
use crate::http_run::HttpRun;
use std::fmt;
use std::path::PathBuf;

/// Configuration of the HTTP pace benchmark.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Path of the program `bakeoff`.
    pub program: PathBuf,
    /// Calls per run.
    pub calls: u32,
}

/// Results for one provider.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRow {
    /// Name of the provider.
    pub profile: &'static str,
    /// Seconds of an optimal scheduler.
    pub ideal_seconds: f64,
    /// Measured seconds, including the start of the program.
    pub seconds: f64,
    /// Rejections per answered call.
    pub rejections_per_success: f64,
    /// Unanswered calls.
    pub lost: u64,
}

impl HttpRow {
    /// Returns the ratio of the ideal to the measured time.
    pub fn efficiency(&self) -> f64 {
        self.ideal_seconds / self.seconds
    }

    /// Returns the column names.
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

/// A provider and the optimal time for the calls.
struct ProviderCase {
    name: &'static str,
    profile: String,
    ideal_seconds: f64,
}

/// Latency of an answer in seconds.
const LATENCY: f64 = 0.3;
/// Concurrency limit.
const CAP: u32 = 30;
/// Rate limit per second, and bucket size.
const RATE: f64 = 50.0;
const BURST: u32 = 5;
/// Duration of the outage in seconds.
const OUTAGE: f64 = 2.0;

fn provider_cases(calls: u32) -> [ProviderCase; 3] {
    let latency = format!("latency = {{ kind = \"fixed\", ms = {} }}", LATENCY * 1e3);
    // Requests are answered in waves of `CAP`; the last wave may be smaller.
    let waves = f64::from(calls.div_ceil(CAP)) * LATENCY;
    // Halfway through the work.
    let from = (waves / 2.0).max(0.1);
    let rate = f64::from(calls.saturating_sub(BURST)) / RATE + LATENCY;
    [
        ProviderCase {
            name: "cap 30",
            profile: format!("{latency}\nconcurrency = {CAP}"),
            ideal_seconds: waves,
        },
        ProviderCase {
            name: "50/s burst 5",
            profile: format!("{latency}\nrequests = {{ rate_per_s = {RATE}, burst = {BURST} }}"),
            ideal_seconds: rate,
        },
        ProviderCase {
            name: "cap 30, outage 2 s",
            profile: format!(
                "{latency}\nconcurrency = {CAP}\noutages = [{{ from_s = {from}, to_s = {} }}]",
                from + OUTAGE
            ),
            ideal_seconds: waves + OUTAGE,
        },
    ]
}

/// Runs the benchmark, one provider after the other.
pub fn over_http(config: &HttpConfig) -> Result<Vec<HttpRow>, Error> {
    provider_cases(config.calls).iter().map(|case| measure(config, case)).collect()
}

fn measure(config: &HttpConfig, case: &ProviderCase) -> Result<HttpRow, Error> {
    let run = HttpRun {
        program: &config.program,
        profile: &case.profile,
        calls: config.calls,
        limits: "strategy = \"auto\"",
        http2_streams: None,
        time_limit: None,
    };
    let figures = run.measure()?;
    Ok(HttpRow {
        profile: case.name,
        ideal_seconds: case.ideal_seconds,
        seconds: figures.seconds,
        rejections_per_success: figures.rejections_per_success,
        lost: figures.lost,
    })
}
