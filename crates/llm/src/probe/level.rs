//! One level of the probe, as it is told afterwards.

use super::sample::{Sample, quantile};

/// What a level was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Twice as many in flight as at the level before.
    Ramp,
    /// Just above the limit, to find out what kind it is and where.
    Measure,
    /// What is going to be recommended.
    Confirm,
}

impl Purpose {
    /// One word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Purpose::Ramp => "ramp",
            Purpose::Measure => "measure",
            Purpose::Confirm => "confirm",
        }
    }
}

/// One level and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// What it was for.
    pub purpose: Purpose,
    /// Most requests in flight.
    pub connections: u32,
    /// Requests per second, where they were spaced.
    pub per_second: Option<f64>,
    /// Requests sent.
    pub sent: u32,
    /// Requests answered.
    pub accepted: u32,
    /// Requests rejected for a limit.
    pub rejected: u32,
    /// Requests that failed otherwise.
    pub failed: u32,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// Median seconds until an answer.
    pub p50_seconds: Option<f64>,
    /// 95 % of answers took at most so many seconds.
    pub p95_seconds: Option<f64>,
    /// Tokens of prompts and answers per second.
    pub tokens_per_second: f64,
}

impl Level {
    pub(super) fn new(
        purpose: Purpose,
        connections: u32,
        spacing: Option<f64>,
        samples: &[Sample],
    ) -> Level {
        let count =
            |wanted: fn(&Sample) -> bool| samples.iter().filter(|s| wanted(s)).count() as u32;
        let start = samples.iter().map(|s| s.sent).fold(f64::INFINITY, f64::min);
        let end = samples.iter().map(|s| s.ended).fold(start, f64::max);
        let seconds = if samples.is_empty() { 0.0 } else { end - start };
        let latencies = || samples.iter().filter(|s| s.is_answered()).map(Sample::latency);
        let tokens: u64 = samples.iter().map(Sample::tokens).sum();
        let (accepted, rejected) = (count(Sample::is_answered), count(Sample::is_rejected));
        Level {
            purpose,
            connections,
            per_second: spacing.map(|spacing| 1.0 / spacing),
            sent: samples.len() as u32,
            accepted,
            rejected,
            failed: samples.len() as u32 - accepted - rejected,
            seconds,
            p50_seconds: quantile(latencies(), 0.5),
            p95_seconds: quantile(latencies(), 0.95),
            tokens_per_second: if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 },
        }
    }
}
