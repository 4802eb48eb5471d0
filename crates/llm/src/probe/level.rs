//! Figures of one level of a probe.

use super::sample::{RequestSample, quantile};

/// Purpose of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelPurpose {
    /// Doubles the requests in flight of the previous level.
    Ramp,
    /// Stays just above the limit to determine its kind and value.
    Measure,
    /// Tries the settings that will be recommended.
    Confirm,
}

impl LevelPurpose {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            LevelPurpose::Ramp => "ramp",
            LevelPurpose::Measure => "measure",
            LevelPurpose::Confirm => "confirm",
        }
    }
}

/// One level of a probe: a constant load and its results.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeLevel {
    /// Purpose.
    pub purpose: LevelPurpose,
    /// Maximum number of requests in flight.
    pub connections: u32,
    /// Requests per second, if they were spaced evenly.
    pub per_second: Option<f64>,
    /// Requests sent.
    pub sent: u32,
    /// Requests accepted.
    pub accepted: u32,
    /// Requests rejected because of a limit.
    pub rejected: u32,
    /// Requests that failed for another reason.
    pub failed: u32,
    /// Seconds from the first request to the last response.
    pub seconds: f64,
    /// Median latency in seconds.
    pub p50_seconds: Option<f64>,
    /// 95th percentile of the latency in seconds.
    pub p95_seconds: Option<f64>,
    /// Input and output tokens per second.
    pub tokens_per_second: f64,
}

impl ProbeLevel {
    pub(super) fn new(
        purpose: LevelPurpose,
        connections: u32,
        spacing: Option<f64>,
        samples: &[RequestSample],
    ) -> ProbeLevel {
        let count = |predicate: fn(&RequestSample) -> bool| {
            samples.iter().filter(|s| predicate(s)).count() as u32
        };
        let start = samples.iter().map(|s| s.sent).fold(f64::INFINITY, f64::min);
        let end = samples.iter().map(|s| s.ended).fold(start, f64::max);
        let seconds = if samples.is_empty() { 0.0 } else { end - start };
        let latencies = || samples.iter().filter(|s| s.is_accepted()).map(RequestSample::latency);
        let tokens: u64 = samples.iter().map(RequestSample::tokens).sum();
        let (accepted, rejected) =
            (count(RequestSample::is_accepted), count(RequestSample::is_rejected));
        ProbeLevel {
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

/// Returns the median latency of the last level without rejections, in seconds.
pub(super) fn unloaded_latency(levels: &[ProbeLevel]) -> Option<f64> {
    let unloaded = levels.iter().rev().filter(|level| level.rejected == 0);
    unloaded.filter_map(|level| level.p50_seconds).next()
}

/// Returns the concurrency from which more requests in flight only increase the latency, if `level` is the
/// first one with such an increase.
pub(super) fn find_knee(levels: &[ProbeLevel], level: &ProbeLevel) -> Option<f64> {
    let (first, before) = (levels.first()?, levels.last()?);
    let (alone, before, now) = (first.p50_seconds?, before.p50_seconds?, level.p50_seconds?);
    let is_slow = level.connections >= 4 && now > 1.8 * alone && now > 1.6 * before;
    is_slow.then(|| f64::from(level.connections) * alone / now)
}
