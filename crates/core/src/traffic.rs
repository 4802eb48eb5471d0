//! How calls go out: what a run keeps in `limits.jsonl` and `http.jsonl`, and how its pools are
//! doing.

use crate::ErrorKind;
use serde::{Deserialize, Serialize};

/// The number of requests that may be in flight to a model has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitRecord {
    /// When, RFC 3339.
    pub timestamp: String,
    /// Which model.
    pub model: String,
    /// Before.
    pub old_limit: u32,
    /// Afterwards.
    pub new_limit: u32,
    /// `slow_start`, `steady_state_up`, `rate_limit` or `manual`.
    pub reason: String,
}

/// One attempt of a call. Neither bodies nor keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpEntry {
    /// When it was sent, RFC 3339.
    pub timestamp: String,
    /// Which model.
    pub model: String,
    /// The method; `SIM` for the simulated provider in the same process.
    pub method: String,
    /// Where to, without the query.
    pub url: String,
    /// The status; absent when there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What went wrong, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
    /// From sending to the last byte.
    pub latency_ms: f64,
    /// Bytes of the body that was sent.
    pub request_bytes: u64,
    /// Bytes of the body that came back.
    pub response_bytes: u64,
    /// Requests in flight when it was sent, this one among them.
    pub in_flight: u32,
    /// Which attempt of its call, from 1.
    pub attempt: u32,
    /// Why it is made again, where it is: the provider's word, or the kind of error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_reason: Option<String>,
    /// After which pause it is made again; 0 when it waits in the queue of its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// How the calls to one model are doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolState {
    /// Which model.
    pub model: String,
    /// Requests on their way.
    pub in_flight: u32,
    /// How many may be; absent where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Requests that wait for a permit.
    pub waiting: u64,
    /// Calls that wait for their next attempt.
    pub resting: u32,
    /// Over the last ten seconds or so.
    pub answers_per_second: f64,
    /// Answers so far.
    pub answered: u64,
    /// Rejections so far: too much, or too many at once.
    pub rejected: u64,
    /// Failures so far: server errors, timeouts, the network.
    pub failed: u64,
    /// For how long nothing goes out because the provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ms: Option<u64>,
    /// When the next request goes out, where it waits for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// Nothing goes out any more, for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}
