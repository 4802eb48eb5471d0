//! How far a job is, and how it ended.

use bakeoff_core::{NanoDollars, Usage};

/// How far a job is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows in all.
    pub rows: u64,
    /// Rows that have been written.
    pub done: u64,
    /// Those of them without an answer.
    pub errors: u64,
    /// Rows about which nobody is asked any more, written or not: some wait behind others.
    pub settled: u64,
    /// Requests that were made, answered or not, by this and earlier processes.
    pub requests: u64,
    /// Those of them that were about rows that had been asked about before.
    pub again: u64,
    /// Requests that are under way, or wait for their turn.
    pub under_way: u64,
    /// Answers that an earlier job had paid for: they came from the cache.
    pub cached: u64,
    /// What they cost; `None` when nobody knows the price.
    pub cost: Option<NanoDollars>,
    /// What they used.
    pub usage: Usage,
}

/// Why a job ended before its last row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Somebody stopped it.
    Interrupted,
    /// It has cost what it may.
    Budget,
    /// The last model answers nobody any more, for this reason.
    Refused(String),
}

/// What a job came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How far it came.
    pub progress: Progress,
    /// Why it ended before its last row.
    pub stop: Option<Stop>,
    /// Models that answered nobody any more though others did, by their names, and why.
    pub refused: Vec<(String, String)>,
}
