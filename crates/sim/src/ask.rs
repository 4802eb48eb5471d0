//! The words between the engine and whoever asks it.

use bakeoff_core::{Request, Response};
use std::time::Duration;

/// One request, and when it arrives.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What is asked. The model's name may carry the prefix `sim/`.
    pub request: &'a Request,
    /// Which trial it belongs to.
    pub trial: u32,
    /// Which of the trial's requests it is.
    pub ordinal: u32,
    /// Time since the engine's start. A time before one already seen counts as that one.
    pub now: Duration,
}

/// What comes back, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// From the asking until the whole answer is there.
    pub delay: Duration,
    /// Headers about limits and waiting, names in lower case.
    pub headers: Vec<(String, String)>,
    /// What comes.
    pub outcome: Outcome,
}

/// What an answer takes and costs, before anything slows or limits it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// How long it takes.
    pub latency: Duration,
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// What comes back.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// An answer.
    Answer(Response),
    /// An error of the provider.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The provider's word for it, such as `rate_limit_exceeded`.
        code: &'static str,
        /// The provider's sentence about it.
        message: String,
    },
    /// A success by its status, with a body that cannot be read.
    Broken(Fault),
}

/// What is wrong with a body, for testing clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The JSON breaks off in its middle, though the transfer is complete.
    Malformed,
    /// The transfer ends before the body does.
    Truncated,
    /// The text holds bytes that are not UTF-8.
    NonUtf8,
    /// There is no body.
    Empty,
}
