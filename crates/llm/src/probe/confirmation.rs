//! Confirmation of a recommendation: requests with the recommended settings.

use super::finding::LimitFinding;

/// Share of the measured limit that is recommended.
pub(super) const SAFETY_FACTOR: f64 = 0.95;
/// A cap is confirmed with this number of requests, because a rate limit may allow a burst, ...
const MIN_CAP_REQUESTS: u32 = 100;
/// ... or for this time in seconds.
const MAX_CAP_SECONDS: f64 = 10.0;
/// Minimum and maximum number of requests that confirm a rate.
const RATE_REQUESTS: (u32, u32) = (10, 250);
/// Maximum number of requests because of those that were accepted before.
const MAX_RUN_REQUESTS: u32 = 100;
/// Time for which a rate is confirmed, as a multiple of the longest time without quota. Shorter than two windows,
/// it might not contain a whole one.
const SPANS: f64 = 2.2;
/// The same if there is not enough time.
const MIN_SPANS: f64 = 1.2;

/// Requests that confirm a recommendation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Confirmation {
    /// Maximum number of requests in flight.
    pub(super) connections: u32,
    /// Seconds between two requests.
    pub(super) spacing: Option<f64>,
    pub(super) requests: u32,
    /// Number of accepted requests without which the recommendation is not confirmed.
    min_accepted: u32,
}

impl Confirmation {
    /// Returns the confirmation of a limit, or `None` if nothing is recommended for it or it needs more requests
    /// than `max_requests`. `latency` is the median,
    /// `span` the longest time for which all requests were rejected, in seconds, and `run` the highest number
    /// that was accepted without a rejection. The confirmation takes at
    /// most `max_seconds` if that is enough, and at most `max_requests`.
    pub(super) fn new(
        limit: LimitFinding,
        latency: f64,
        span: f64,
        run: u32,
        max_seconds: f64,
        max_requests: u32,
    ) -> Option<Confirmation> {
        let (per_second, cap) = match limit {
            LimitFinding::Cap { connections } => {
                let connections = recommended_connections(connections);
                let requests =
                    min_cap_requests(connections).max(MIN_CAP_REQUESTS).min(max_requests);
                return Some(Confirmation {
                    connections,
                    spacing: None,
                    requests,
                    min_accepted: 1,
                });
            }
            LimitFinding::Rate { per_second } => (per_second, None),
            LimitFinding::RateAndCap { per_second, connections } => (per_second, Some(connections)),
            _ => return None,
        };
        let rate = SAFETY_FACTOR * per_second;
        let seconds = (SPANS * span).min(max_seconds).max(MIN_SPANS * span).max(2.0);
        // A window accepts its number of requests at any rate.
        let min_requests = ((SPANS * f64::from(run)) as u32)
            .min(MAX_RUN_REQUESTS)
            .min((rate * max_seconds) as u32);
        let requests = ((rate * seconds).ceil() as u32).max(min_requests);
        let requests = requests.clamp(RATE_REQUESTS.0, RATE_REQUESTS.1);
        // Requests that a window would accept at once confirm nothing.
        let min_accepted = ((rate * span) as u32).max(run.min(MAX_RUN_REQUESTS)).max(1);
        let connections = ((2.0 * rate * latency).ceil() as u32).max(8);
        let connections =
            cap.map_or(connections, |cap| connections.min(recommended_connections(cap)));
        if min_accepted > max_requests {
            return None;
        }
        let requests = requests.max(min_accepted).min(max_requests);
        Some(Confirmation { connections, spacing: Some(1.0 / rate), requests, min_accepted })
    }

    /// Whether the number of accepted requests confirms the recommendation, if none was rejected.
    pub(super) fn is_passed(&self, accepted: u32) -> bool {
        accepted >= self.min_accepted
    }

    /// Whether enough requests were sent after `seconds`.
    pub(super) fn is_complete(&self, sent: u32, seconds: f64) -> bool {
        let is_sufficient = self.spacing.is_none() && sent >= min_cap_requests(self.connections);
        sent >= self.requests.max(1) || is_sufficient && seconds >= MAX_CAP_SECONDS
    }
}

/// Returns the seconds in which the quota for a confirmation is restored, after some that were rejected.
pub(super) fn pause_before(limit: LimitFinding, latency: f64, span: f64, rejected: u32) -> f64 {
    match limit {
        LimitFinding::Cap { .. } => latency.clamp(0.05, 2.0),
        _ => (1.2 * span).max(0.5).max(latency) * 2_f64.powi(rejected as i32),
    }
}

/// Returns the number of requests without which a cap is not confirmed.
fn min_cap_requests(connections: u32) -> u32 {
    2 * connections + 4
}

/// Returns the recommended number of requests in flight for a measured cap.
pub(super) fn recommended_connections(connections: f64) -> u32 {
    ((SAFETY_FACTOR * connections + 1e-9).floor() as u32).max(1)
}
