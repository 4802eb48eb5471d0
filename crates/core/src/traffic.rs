//! Records of `limits.jsonl` and `http.jsonl`, and the state of pools.

use crate::ErrorKind;
use serde::{Deserialize, Serialize};

/// Change of a model's concurrency limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitRecord {
    /// Time of the change, RFC 3339.
    pub timestamp: String,
    /// Name of the model.
    pub model: String,
    /// Limit before the change.
    pub old_limit: u32,
    /// Limit after the change.
    pub new_limit: u32,
    /// `slow_start`, `steady_state_up`, `rate_limit`, `latency` or `manual`.
    pub reason: String,
    /// Requests per minute that were set, if a rate was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u64>,
    /// The limit that determined how fast requests were sent, such as `cap 30`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
}

/// One attempt of a call, without bodies and keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpEntry {
    /// Time of sending, RFC 3339.
    pub timestamp: String,
    /// Name of the model.
    pub model: String,
    /// HTTP method; `SIM` for the in-process simulator.
    pub method: String,
    /// URL without the query.
    pub url: String,
    /// HTTP status; absent without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Kind of error, for failed attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
    /// Time from sending to the last byte.
    pub latency_ms: f64,
    /// Size of the request body.
    pub request_bytes: u64,
    /// Size of the response body.
    pub response_bytes: u64,
    /// Requests in flight at the time of sending, including this one.
    pub in_flight: u32,
    /// Number of the attempt within its call, from 1.
    pub attempt: u32,
    /// Reason of the retry, if there is one: the provider's error code, or the kind of error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_reason: Option<String>,
    /// Delay of the retry; 0 when it waits in the queue of its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// State of the calls to one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolState {
    /// Name of the model.
    pub model: String,
    /// Requests in flight.
    pub in_flight: u32,
    /// Concurrency limit; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Requests waiting for a permit.
    pub waiting: u64,
    /// Calls backing off before their next attempt.
    #[serde(alias = "resting")]
    pub backing_off: u32,
    /// Answer rate over about the last ten seconds.
    pub answers_per_second: f64,
    /// Answers so far.
    pub answered: u64,
    /// Rejections so far: rate limits and concurrency limits.
    pub rejected: u64,
    /// Failures so far: server errors, timeouts, network errors.
    pub failed: u64,
    /// Time for which the provider asked to send no requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ms: Option<u64>,
    /// Time until the next request is sent, if it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// What determines how fast requests are sent, such as `5.0/s (headers)` or `cap 30`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// Reason why no more requests are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// Calls to one model over a whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSummary {
    /// Name of the model.
    pub model: String,
    /// Answers.
    pub answered: u64,
    /// Rejections: rate limits and concurrency limits.
    pub rejected: u64,
    /// Failures: server errors, timeouts, network errors.
    pub failed: u64,
    /// The limit that was found, such as `cap 30`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}
