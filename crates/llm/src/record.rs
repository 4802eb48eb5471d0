//! One record per HTTP request, for logs: destination, status, sizes and latency.
//!
//! Records hold no bodies, no headers and no query, which may contain a key.

use crate::transport::SendTime;
use bakeoff_core::ErrorKind;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// One request of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpRecord<'a> {
    /// Time of sending.
    pub time: SystemTime,
    /// Name of the model, or of the target for a service.
    pub model: &'a str,
    /// HTTP method; `SIM` for the simulated provider in this process.
    pub method: &'static str,
    /// URL without the query.
    pub url: &'a str,
    /// HTTP status; absent when there was no response.
    pub status: Option<u16>,
    /// Kind of the error, if the request failed.
    pub error: Option<ErrorKind>,
    /// Time from sending to the last byte. It starts when the request is passed to an open connection.
    pub latency: Duration,
    /// Size of the request body.
    pub request_bytes: u64,
    /// Size of the response body.
    pub response_bytes: u64,
    /// Requests in flight in the pool at the time of sending, including this one.
    pub in_flight: u32,
    /// Number of this request within its call, from 1.
    pub attempt: u32,
    /// Details of the retry, if there will be one.
    pub retry: Option<RetryInfo<'a>>,
}

impl<'a> HttpRecord<'a> {
    /// Creates the record of a first `POST` without a response, for tests of observers.
    pub fn new(model: &'a str, url: &'a str) -> HttpRecord<'a> {
        HttpRecord {
            time: SystemTime::UNIX_EPOCH,
            model,
            method: "POST",
            url,
            status: None,
            error: None,
            latency: Duration::ZERO,
            request_bytes: 0,
            response_bytes: 0,
            in_flight: 1,
            attempt: 1,
            retry: None,
        }
    }
}

/// Retry of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryInfo<'a> {
    /// Error code of the provider, if it sent one.
    pub code: Option<&'a str>,
    /// Backoff before the retry; zero when the call waits in the queue of its pool instead.
    pub pause: Duration,
}

/// Callback that receives a record for every finished request.
#[derive(Clone)]
pub struct HttpObserver(Arc<Observe>);

type Observe = dyn Fn(&HttpRecord<'_>) + Send + Sync;

impl HttpObserver {
    /// Creates an observer. The function must return quickly, because calls wait for it.
    pub fn new(observe: impl Fn(&HttpRecord<'_>) + Send + Sync + 'static) -> HttpObserver {
        HttpObserver(Arc::new(observe))
    }
}

impl fmt::Debug for HttpObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpObserver").finish_non_exhaustive()
    }
}

/// Facts collected while a request is in flight. They remain available when the request is cancelled.
#[derive(Debug, Default)]
pub(crate) struct RequestTraffic {
    /// Without the query.
    pub(crate) url: String,
    pub(crate) status: Option<u16>,
    pub(crate) response_bytes: u64,
    pub(crate) sent: SendTime,
}

/// Name and method of a request, the same for all retries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestInfo<'a> {
    pub(crate) name: &'a str,
    pub(crate) method: &'static str,
}

/// Guard of a request in flight. If it is dropped unfinished, the request is recorded as cancelled.
pub(crate) struct RequestGuard<'a> {
    observer: Option<&'a HttpObserver>,
    info: RequestInfo<'a>,
    time: SystemTime,
    started: Instant,
    request_bytes: usize,
    in_flight: u32,
    attempt: u32,
    pub(crate) traffic: RequestTraffic,
}

impl<'a> RequestGuard<'a> {
    pub(crate) fn new(
        observer: Option<&'a HttpObserver>,
        info: RequestInfo<'a>,
        request_bytes: usize,
        in_flight: u32,
        attempt: u32,
    ) -> RequestGuard<'a> {
        RequestGuard {
            observer,
            info,
            time: SystemTime::now(),
            started: Instant::now(),
            request_bytes,
            in_flight,
            attempt,
            traffic: RequestTraffic::default(),
        }
    }

    /// Returns the time since the request was passed to a connection, or since it started if it was not.
    pub(crate) fn latency(&self) -> Duration {
        self.traffic.sent.get().unwrap_or(self.started).elapsed()
    }

    /// Records the outcome of the request.
    pub(crate) fn finish(
        mut self,
        latency: Duration,
        error: Option<ErrorKind>,
        retry: Option<RetryInfo<'_>>,
    ) {
        self.record(latency, error, retry);
        self.observer = None;
    }

    fn record(&self, latency: Duration, error: Option<ErrorKind>, retry: Option<RetryInfo<'_>>) {
        let Some(HttpObserver(observe)) = self.observer else { return };
        let sent = self.traffic.sent.get().unwrap_or(self.started);
        observe(&HttpRecord {
            time: self.time + sent.saturating_duration_since(self.started),
            model: self.info.name,
            method: self.info.method,
            url: &self.traffic.url,
            status: self.traffic.status,
            error,
            latency,
            request_bytes: self.request_bytes as u64,
            response_bytes: self.traffic.response_bytes,
            in_flight: self.in_flight,
            attempt: self.attempt,
            retry,
        });
    }
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.record(self.latency(), Some(ErrorKind::Cancelled), None);
    }
}
