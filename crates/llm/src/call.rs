//! Input and result of a call.

use crate::{Delta, Failure};
use bakeoff_core::{ErrorKind, NanoDollars, Response};
use bakeoff_pace::RunTag;
use http::HeaderMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Identity, cancellation and listeners of a call.
///
/// ```
/// use bakeoff_llm::CallContext;
///
/// let context = CallContext::default().sample("planner").trial(2);
/// assert_eq!((context.sample, context.trial), ("planner", 2));
/// ```
#[derive(Default)]
#[non_exhaustive]
pub struct CallContext<'a> {
    /// Run that the call belongs to; a pool serves its runs in turn.
    pub run: RunTag,
    /// Sample that the response belongs to; samples never share cached responses.
    pub sample: &'a str,
    /// Number of the trial.
    pub trial: u32,
    /// Counter of identical requests within the trial; each one is a separate sample.
    pub ordinals: Ordinals,
    /// Aborts the call in any state.
    pub cancel: CancellationToken,
    /// Lets a request in flight finish and prevents further ones.
    pub stop: CancellationToken,
    /// Listener called before every retry.
    pub on_retry: Option<&'a (dyn Fn(&Retry<'_>) + Send + Sync)>,
    /// Listener for the deltas of a streamed response. A retry restarts the response from its beginning.
    pub on_delta: Option<&'a (dyn Fn(&Delta) + Send + Sync)>,
}

impl<'a> CallContext<'a> {
    /// Sets the run that the call belongs to.
    #[must_use]
    pub fn run(mut self, run: RunTag) -> CallContext<'a> {
        self.run = run;
        self
    }

    /// Sets the sample that the response belongs to.
    #[must_use]
    pub fn sample(mut self, sample: &'a str) -> CallContext<'a> {
        self.sample = sample;
        self
    }

    /// Sets the number of the trial.
    #[must_use]
    pub fn trial(mut self, trial: u32) -> CallContext<'a> {
        self.trial = trial;
        self
    }

    /// Sets the counter of identical requests, which the calls of a trial share.
    #[must_use]
    pub fn ordinals(mut self, ordinals: Ordinals) -> CallContext<'a> {
        self.ordinals = ordinals;
        self
    }

    /// Sets the token that aborts the call in any state.
    #[must_use]
    pub fn cancel(mut self, cancel: CancellationToken) -> CallContext<'a> {
        self.cancel = cancel;
        self
    }

    /// Sets the token that lets a request in flight finish and prevents further ones.
    #[must_use]
    pub fn stop(mut self, stop: CancellationToken) -> CallContext<'a> {
        self.stop = stop;
        self
    }

    /// Sets the listener called before every retry.
    #[must_use]
    pub fn on_retry(mut self, on_retry: &'a (dyn Fn(&Retry<'_>) + Send + Sync)) -> CallContext<'a> {
        self.on_retry = Some(on_retry);
        self
    }

    /// Sets the listener for the deltas of a streamed response.
    #[must_use]
    pub fn on_delta(mut self, on_delta: &'a (dyn Fn(&Delta) + Send + Sync)) -> CallContext<'a> {
        self.on_delta = Some(on_delta);
        self
    }
}

impl std::fmt::Debug for CallContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext").field("trial", &self.trial).finish_non_exhaustive()
    }
}

/// Number of times each request was made within a trial. Clones share their counts.
#[derive(Debug, Clone, Default)]
pub struct Ordinals(Arc<Mutex<HashMap<blake3::Hash, u32>>>);

impl Ordinals {
    /// Returns the ordinal of this occurrence of the request, from 0.
    pub(crate) fn next(&self, request: blake3::Hash) -> u32 {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(request).or_default();
        let ordinal = *count;
        *count += 1;
        ordinal
    }
}

/// A retry that is about to start.
#[derive(Debug)]
pub struct Retry<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Backoff before the retry; zero when the call waits in the queue of its pool instead.
    pub pause: Duration,
    /// Failure of the previous request.
    pub failure: &'a Failure,
}

/// A successful call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Response of the model.
    pub response: Response,
    /// Cost of the call: `None` when the price is unknown, zero for a cached response.
    pub cost: Option<NanoDollars>,
    /// Latency of the successful request. For a cached response this is the latency of the original
    /// request, or zero if it was not recorded.
    pub latency: Duration,
    /// Whether the response came from the cache; such calls are excluded from latency figures.
    pub cached: bool,
    /// Number of failed requests before the successful one.
    pub retries: u32,
    /// Likely cost of failed requests for which providers charge: those with late or malformed responses.
    pub lost: NanoDollars,
    /// Headers of the response.
    pub headers: HeaderMap,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
pub struct CallError {
    /// Failure of the last request, with secrets redacted.
    pub failure: Failure,
    /// Number of failed requests before the last one.
    pub retries: u32,
    /// Likely cost of failed requests for which providers charge: those with late or malformed responses.
    pub lost: NanoDollars,
}

impl CallError {
    pub(crate) fn new(failure: Failure, retries: u32) -> CallError {
        CallError { failure, retries, lost: NanoDollars(0) }
    }

    pub(crate) fn cancelled(retries: u32) -> CallError {
        CallError::new(Failure::local(ErrorKind::Cancelled, "cancelled"), retries)
    }
}
