//! Requests to the engine and the replies to them.

use crate::BatchSlot;
use bakeoff_core::{Request, Response};
use std::time::Duration;

/// A request and its time of arrival.
#[derive(Debug, Clone, Copy)]
pub struct SimRequest<'a> {
    /// The request. The model's name may carry the prefix `sim/`.
    pub request: &'a Request,
    /// Number of the trial that the request belongs to.
    pub trial: u32,
    /// Ordinal of the request within the trial.
    pub ordinal: u32,
    /// Time since the engine's start. An earlier time than the latest one seen counts as that one.
    pub now: Duration,
}

/// The reply to a request and its latency.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Time from the request's arrival until the reply is complete. At a batching server, requests that
    /// arrive later delay it further.
    pub delay: Duration,
    /// Place at a batching server. The reply is complete when [`Engine::time_left`] returns nothing for it.
    ///
    /// [`Engine::time_left`]: crate::Engine::time_left
    pub slot: Option<BatchSlot>,
    /// Rate-limit and retry headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// HTTP status of an answer: 200, or 201 if the profile draws it.
    pub answer_status: u16,
    /// Answer or error.
    pub outcome: Outcome,
}

/// Latency and token counts of an answer when no limit or load affects it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestEstimate {
    /// Time until the answer is complete.
    pub latency: Duration,
    /// Prompt tokens.
    pub input: u64,
    /// Answer tokens.
    pub output: u64,
}

/// Answer, provider error or broken body.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// An answer.
    Answer(Response),
    /// A provider error.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The provider's error code, such as `rate_limit_exceeded`.
        code: &'static str,
        /// The provider's error message.
        message: String,
    },
    /// An invalid response or none.
    Broken(Fault),
}

/// Defect of a response, for testing clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The JSON is cut in the middle, but the transfer is complete.
    Malformed,
    /// The transfer ends before the body does.
    Truncated,
    /// The text contains bytes that are not UTF-8.
    NonUtf8,
    /// The body is empty.
    Empty,
    /// The connection is reset without a response.
    Reset,
    /// The response never arrives; the delay of the reply is longer than any timeout.
    Stall,
}
