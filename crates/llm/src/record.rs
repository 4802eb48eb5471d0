//! One record per attempt, for whoever keeps a log: what went out, what came back, how long it
//! took. Nothing of the bodies, no headers, and no query, which may hold a key.

use bakeoff_core::ErrorKind;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// One attempt of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpRecord<'a> {
    /// When it was sent.
    pub time: SystemTime,
    /// Which model, or which target where it is no model.
    pub model: &'a str,
    /// The method; `SIM` for the simulated provider in this process.
    pub method: &'static str,
    /// Where to, without the query.
    pub url: &'a str,
    /// The status; absent when there was no answer.
    pub status: Option<u16>,
    /// What went wrong, where something did.
    pub error: Option<ErrorKind>,
    /// From sending to the last byte.
    pub latency: Duration,
    /// Bytes of the body that was sent.
    pub request_bytes: u64,
    /// Bytes of the body that came back.
    pub response_bytes: u64,
    /// Requests in flight in its pool when it was sent, this one among them.
    pub in_flight: u32,
    /// Which attempt of its call, from 1.
    pub attempt: u32,
    /// Why it will be made again and after which pause, where it will.
    pub retry: Option<Retrying<'a>>,
}

/// An attempt will be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retrying<'a> {
    /// The provider's name of the error, where it has one.
    pub code: Option<&'a str>,
    /// After which pause; none when it waits in the queue of its pool.
    pub pause: Duration,
}

/// Told of every attempt when it is over.
#[derive(Clone)]
pub struct HttpObserver(Arc<Observe>);

type Observe = dyn Fn(&HttpRecord<'_>) + Send + Sync;

impl HttpObserver {
    /// Calls the function; it should not take long, for calls wait for it.
    pub fn new(observe: impl Fn(&HttpRecord<'_>) + Send + Sync + 'static) -> HttpObserver {
        HttpObserver(Arc::new(observe))
    }
}

impl fmt::Debug for HttpObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpObserver").finish_non_exhaustive()
    }
}

/// What an attempt finds out on its way. It outlives one that is given up.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Without the query.
    pub(crate) url: String,
    pub(crate) status: Option<u16>,
    pub(crate) response_bytes: u64,
}

/// Who is asked, and by which method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a str,
    pub(crate) method: &'static str,
}

/// An attempt under way. One that is dropped before it is over is recorded as cancelled.
pub(crate) struct Attempting<'a> {
    observer: Option<&'a HttpObserver>,
    what: Asked<'a>,
    time: SystemTime,
    pub(crate) sent: Instant,
    request_bytes: usize,
    in_flight: u32,
    attempt: u32,
    pub(crate) traffic: Traffic,
}

impl<'a> Attempting<'a> {
    pub(crate) fn new(
        observer: Option<&'a HttpObserver>,
        what: Asked<'a>,
        request_bytes: usize,
        in_flight: u32,
        attempt: u32,
    ) -> Attempting<'a> {
        Attempting {
            observer,
            what,
            time: SystemTime::now(),
            sent: Instant::now(),
            request_bytes,
            in_flight,
            attempt,
            traffic: Traffic::default(),
        }
    }

    /// The attempt is over.
    pub(crate) fn over(
        mut self,
        latency: Duration,
        error: Option<ErrorKind>,
        retry: Option<Retrying<'_>>,
    ) {
        self.tell(latency, error, retry);
        self.observer = None;
    }

    fn tell(&self, latency: Duration, error: Option<ErrorKind>, retry: Option<Retrying<'_>>) {
        let Some(HttpObserver(observe)) = self.observer else { return };
        observe(&HttpRecord {
            time: self.time,
            model: self.what.name,
            method: self.what.method,
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

impl Drop for Attempting<'_> {
    fn drop(&mut self) {
        self.tell(self.sent.elapsed(), Some(ErrorKind::Cancelled), None);
    }
}
