//! Progress and outcome of a job.

use bakeoff_core::{NanoDollars, Usage};

/// Snapshot of the progress of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobProgress {
    /// Number of rows.
    pub rows: u64,
    /// Rows written to the output.
    pub done: u64,
    /// Written rows without an answer.
    pub errors: u64,
    /// Rows that need no further request. Includes rows that are not written yet because earlier rows
    /// are unfinished.
    pub settled: u64,
    /// Requests sent by this and earlier processes, including failed ones.
    pub requests: u64,
    /// Requests for rows that had been requested before.
    pub reasks: u64,
    /// Requests in flight or waiting for a permit.
    pub in_flight: u64,
    /// Responses served from the cache.
    pub cached: u64,
    /// Cost of all requests; `None` if a price is unknown.
    pub cost: Option<NanoDollars>,
    /// Token usage of all requests.
    pub usage: Usage,
}

/// Reason why a job stopped before its last row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The job was cancelled.
    Interrupted,
    /// The cost limit is reached.
    Budget,
    /// The last model accepts no more requests; holds the reason.
    ModelUnavailable(String),
}

/// Outcome of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutcome {
    /// Progress at the end.
    pub progress: JobProgress,
    /// Reason why the job stopped before its last row.
    pub stop: Option<StopReason>,
    /// Models that stopped accepting requests while other models continued, by name, with the reason.
    pub unavailable_models: Vec<(String, String)>,
}
