//! One HTTP/2 connection and the streams on it.

use super::connector::Io;
use crate::transport::SendTime;
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Error, Reason, RecvStream};
use http::{Request, Response};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of streams on one connection, whatever the server allows. All streams of a connection share
/// its bandwidth and end with it.
const MAX_STREAMS: usize = 256;

/// Bytes that the server may send on a stream, and on a connection, before the client has read them. The
/// protocol's default of 64 KiB slows down long responses over long distances.
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// Performs I/O for all streams of a connection; must be polled.
pub(super) type Driver = Connection<Box<dyn Io>, Bytes>;

/// An HTTP/2 connection. The counts change only under the lock of its pool.
#[derive(Debug)]
pub(super) struct Http2Connection {
    sender: SendRequest<Bytes>,
    in_flight: AtomicUsize,
    max_streams: AtomicUsize,
    is_retired: AtomicBool,
    opened: Instant,
    /// Time of the last response or chunk, in milliseconds after `opened`.
    received_ms: AtomicU64,
}

/// Why a request has no response.
#[derive(Debug)]
pub(super) enum StreamError {
    /// The server has not processed the request, so it may be sent again.
    Unprocessed(Error),
    /// The server may have processed the request.
    Lost(Error),
}

impl Http2Connection {
    /// Starts HTTP/2 and waits for the settings of the server, which contain the number of streams.
    pub(super) async fn start(io: Box<dyn Io>) -> Result<(Http2Connection, Driver), Error> {
        let (sender, mut driver) = Builder::new()
            // No stream before the settings arrive: the server refuses streams beyond its limit.
            .initial_max_send_streams(0)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .enable_push(false)
            .handshake(io)
            .await?;
        poll_fn(|context| match Pin::new(&mut driver).poll(context) {
            Poll::Ready(end) => Poll::Ready(end.and(Err(Reason::NO_ERROR.into()))),
            Poll::Pending if sender.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        })
        .await?;
        let connection = Http2Connection {
            max_streams: AtomicUsize::new(0),
            sender,
            in_flight: AtomicUsize::new(0),
            is_retired: AtomicBool::new(false),
            opened: Instant::now(),
            received_ms: AtomicU64::new(0),
        };
        connection.refresh();
        Ok((connection, driver))
    }

    /// Returns the number of streams that may be open at once.
    pub(super) fn max_streams(&self) -> usize {
        self.max_streams.load(Ordering::Relaxed)
    }

    /// Counts a stream, if another one may be opened.
    pub(super) fn take_stream(&self) -> bool {
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        let is_free = in_flight < self.max_streams() && !self.is_retired.load(Ordering::Relaxed);
        if is_free {
            self.in_flight.store(in_flight + 1, Ordering::Relaxed);
        }
        is_free
    }

    /// Returns a stream. The server may have changed its limit meanwhile.
    pub(super) fn return_stream(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.refresh();
    }

    fn refresh(&self) {
        let max = self.sender.current_max_send_streams().min(MAX_STREAMS);
        self.max_streams.store(max, Ordering::Relaxed);
    }

    /// Accepts no further streams.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// Returns how long the connection has had no stream and received nothing; `None` if it has a stream.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let is_idle = self.in_flight.load(Ordering::Relaxed) == 0;
        is_idle.then(|| self.last_received().elapsed())
    }

    pub(super) fn last_received(&self) -> Instant {
        self.opened + Duration::from_millis(self.received_ms.load(Ordering::Relaxed))
    }

    /// Notes that the server has sent something.
    pub(super) fn mark_received(&self) {
        let elapsed = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.received_ms.store(elapsed, Ordering::Relaxed);
    }

    /// Sends a request and waits for the status and headers of the response.
    pub(super) async fn send(
        &self,
        request: Request<()>,
        body: Bytes,
        sent: &SendTime,
    ) -> Result<Response<RecvStream>, StreamError> {
        let unprocessed = |error| {
            self.retire();
            StreamError::Unprocessed(error)
        };
        let mut sender = self.sender.clone().ready().await.map_err(unprocessed)?;
        let (response, mut stream) =
            sender.send_request(request, body.is_empty()).map_err(unprocessed)?;
        sent.mark();
        if !body.is_empty() {
            stream.send_data(body, true).map_err(StreamError::Lost)?;
        }
        let response = response.await.map_err(|error| {
            if error.is_go_away() || error.is_io() {
                self.retire();
            }
            match is_unprocessed(&error) {
                true => StreamError::Unprocessed(error),
                false => StreamError::Lost(error),
            }
        })?;
        self.mark_received();
        Ok(response)
    }
}

/// Whether the server states that it has not processed a request (RFC 9113, section 8.7).
fn is_unprocessed(error: &Error) -> bool {
    error.is_remote()
        && match error.reason() {
            Some(Reason::REFUSED_STREAM) => error.is_reset(),
            // Streams that the server still processes do not fail with it.
            Some(Reason::NO_ERROR) => error.is_go_away(),
            _ => false,
        }
}
