//! The HTTP/2 connections of one origin.
//!
//! A request gets a stream on an open connection, and further connections are opened as soon as requests wait
//! for one. No request waits inside the HTTP library, where the wait would count as latency of the model.

use super::CONNECT_TIMEOUT;
use super::connector::open;
use super::failure::{Destination, cannot_connect};
use super::http2::{Driver, Http2Connection, StreamError};
use crate::transport::{SendTime, TransportError};
use bytes::Bytes;
use h2::RecvStream;
use http::{Request, Response};
use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Maximum number of connections of an origin that are opened at once.
const MAX_OPENING: usize = 32;

/// Time without a further connection after one could not be opened although others are open.
const REOPEN_DELAY: Duration = Duration::from_secs(5);

/// Time without a stream after which a connection is closed. Routers forget idle connections silently.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// A connection that has sent nothing for so long while a request failed on it counts as broken.
const STALL_TIME: Duration = Duration::from_secs(10);

/// Pool of the HTTP/2 connections of one origin.
#[derive(Debug)]
pub(super) struct StreamPool(Arc<Shared>);

struct Shared {
    destination: Destination,
    connector: reqwest::Client,
    state: Mutex<State>,
}

struct State {
    /// Earlier ones are filled first.
    connections: Vec<Arc<Http2Connection>>,
    /// Requests without a stream. All open connections are full while there is one.
    waiting: VecDeque<oneshot::Sender<Result<Route, TransportError>>>,
    /// Number of connections that are being opened.
    opening: usize,
    /// Streams of the newest connection. Before the first one, all requests wait for it.
    streams_per_connection: usize,
    /// No connection is opened earlier, unless there is none.
    reopen_at: Option<Instant>,
    is_http1: bool,
}

/// How a request is sent.
pub(super) enum Route {
    /// On a stream of an HTTP/2 connection.
    Stream(StreamPermit),
    /// Over HTTP/1.1, because the server does not speak HTTP/2.
    Http1,
}

/// Right to one stream; returned on drop.
pub(super) struct StreamPermit {
    shared: Arc<Shared>,
    connection: Arc<Http2Connection>,
    sent: Option<SendTime>,
}

impl StreamPool {
    pub(super) fn new(destination: Destination, connector: reqwest::Client) -> StreamPool {
        let state = State {
            connections: Vec::new(),
            waiting: VecDeque::new(),
            opening: 0,
            streams_per_connection: usize::MAX,
            reopen_at: None,
            is_http1: false,
        };
        StreamPool(Arc::new(Shared { destination, connector, state: Mutex::new(state) }))
    }

    /// Waits for a stream.
    pub(super) async fn acquire(&self) -> Result<Route, TransportError> {
        let route = {
            let mut state = self.0.lock();
            if state.is_http1 {
                return Ok(Route::Http1);
            }
            if state.waiting.is_empty()
                && let Some(permit) = self.0.take_stream(&state)
            {
                return Ok(Route::Stream(permit));
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push_back(sender);
            self.0.open_missing(&mut state);
            receiver
        };
        let cancelled = |_| Err(cannot_connect(&self.0.destination, "cancelled"));
        route.await.unwrap_or_else(cancelled)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("destination", &self.destination).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_stream(self: &Arc<Shared>, state: &State) -> Option<StreamPermit> {
        let connection = state.connections.iter().find(|connection| connection.take_stream())?;
        let connection = Arc::clone(connection);
        Some(StreamPermit { shared: Arc::clone(self), connection, sent: None })
    }

    /// Gives free streams to waiting requests and opens connections for the others. The caller drops the
    /// returned permit after it has released the lock.
    #[must_use]
    fn serve(self: &Arc<Shared>, state: &mut State) -> Option<Route> {
        while !state.waiting.is_empty() {
            let Some(permit) = self.take_stream(state) else {
                self.open_missing(state);
                return None;
            };
            let mut undelivered = Some(Route::Stream(permit));
            // Requests may have been cancelled.
            while let Some(route) = undelivered.take() {
                let Some(request) = state.waiting.pop_front() else { return Some(route) };
                undelivered = request.send(Ok(route)).err().and_then(Result::ok);
            }
        }
        None
    }

    /// Opens connections for the waiting requests, except for those that the connections being opened will
    /// serve.
    fn open_missing(self: &Arc<Shared>, state: &mut State) {
        let is_missing = |state: &State| {
            state.opening < MAX_OPENING
                && state.waiting.len() > state.opening.saturating_mul(state.streams_per_connection)
        };
        let must_wait = !state.connections.is_empty()
            && state.reopen_at.is_some_and(|reopen_at| Instant::now() < reopen_at);
        // A permit may be dropped after its runtime.
        let Ok(runtime) = Handle::try_current() else { return };
        if must_wait || !is_missing(state) {
            return;
        }
        state.waiting.retain(|request| !request.is_closed());
        while is_missing(state) {
            state.opening += 1;
            let opening = Opening(Some(Arc::clone(self)));
            // The task is not part of a request, because others wait for the connection too. It ends within
            // the time limits of connecting.
            runtime.spawn(opening.run());
        }
    }

    /// Takes a new connection into the pool, or reports why there is none.
    fn finish_opening(
        self: &Arc<Shared>,
        result: Result<Option<Arc<Http2Connection>>, TransportError>,
    ) {
        let mut state = self.lock();
        state.opening -= 1;
        let undelivered = match result {
            Ok(Some(connection)) => {
                state.streams_per_connection = connection.max_streams().max(1);
                state.connections.push(connection);
                self.serve(&mut state)
            }
            Ok(None) => {
                state.is_http1 = true;
                for request in state.waiting.drain(..) {
                    let _ = request.send(Ok(Route::Http1));
                }
                None
            }
            // Some servers limit the number of connections; requests then wait for streams.
            Err(_) if !state.connections.is_empty() => {
                state.reopen_at = Some(Instant::now() + REOPEN_DELAY);
                None
            }
            Err(error) if state.opening == 0 => {
                for request in state.waiting.drain(..) {
                    let _ = request.send(Err(error.clone()));
                }
                None
            }
            Err(_) => None,
        };
        drop(state);
        drop(undelivered);
    }

    /// Removes retired connections. Their open streams continue.
    fn remove_retired(self: &Arc<Shared>) {
        let mut state = self.lock();
        state.connections.retain(|connection| !connection.is_retired());
        let undelivered = self.serve(&mut state);
        drop(state);
        drop(undelivered);
    }
}

/// A connection that is being opened. If it is dropped unfinished, waiting requests fail.
struct Opening(Option<Arc<Shared>>);

impl Opening {
    async fn run(mut self) {
        let Some(shared) = &self.0 else { return };
        let result = connect(shared).await;
        let Some(shared) = self.0.take() else { return };
        match result {
            Ok(Some((connection, driver))) => {
                let connection = Arc::new(connection);
                shared.finish_opening(Ok(Some(Arc::clone(&connection))));
                let pool = Arc::downgrade(&shared);
                drop(shared);
                drive(driver, connection, pool).await;
            }
            Ok(None) => shared.finish_opening(Ok(None)),
            Err(error) => shared.finish_opening(Err(error)),
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.finish_opening(Err(cannot_connect(&shared.destination, "cancelled")));
        }
    }
}

async fn connect(shared: &Shared) -> Result<Option<(Http2Connection, Driver)>, TransportError> {
    let Some(io) = open(&shared.connector, &shared.destination).await? else { return Ok(None) };
    let start = tokio::time::timeout(CONNECT_TIMEOUT, Http2Connection::start(io)).await;
    let start = start.map_err(|_| cannot_connect(&shared.destination, "no HTTP/2 settings"))?;
    start.map(Some).map_err(|error| cannot_connect(&shared.destination, error))
}

/// Performs the I/O of a connection until the server closes it, or until it has left the pool and its last
/// stream has ended.
async fn drive(driver: Driver, connection: Arc<Http2Connection>, pool: Weak<Shared>) {
    // The connection ends with its last handle, so this task must not own one.
    let connection = {
        let weak = Arc::downgrade(&connection);
        drop(connection);
        weak
    };
    let retire = || {
        if let Some(connection) = connection.upgrade() {
            connection.retire();
        }
        if let Some(pool) = pool.upgrade() {
            pool.remove_retired();
        }
    };
    let mut driver = pin!(driver);
    while tokio::time::timeout(IDLE_TIMEOUT, &mut driver).await.is_err() {
        let idle_time = connection.upgrade().and_then(|connection| connection.idle_time());
        if idle_time.is_some_and(|idle_time| idle_time >= IDLE_TIMEOUT) {
            retire();
        }
    }
    retire();
}

impl StreamPermit {
    /// Sends a request and waits for the status and headers of the response.
    pub(super) async fn send(
        &mut self,
        request: Request<()>,
        body: Bytes,
        sent: &SendTime,
    ) -> Result<Response<RecvStream>, StreamError> {
        self.sent = Some(sent.clone());
        let result = self.connection.send(request, body, sent).await;
        self.sent = None;
        if self.connection.is_retired() {
            self.shared.remove_retired();
        }
        result
    }

    /// Notes that a part of the response has arrived.
    pub(super) fn mark_received(&self) {
        self.connection.mark_received();
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        // The request was abandoned. If nothing else arrives either, the connection is broken.
        let sent = self.sent.take().and_then(|sent| sent.get());
        let is_stalled = sent.is_some_and(|sent| {
            sent.elapsed() >= STALL_TIME && self.connection.last_received() < sent
        });
        let mut state = self.shared.lock();
        self.connection.return_stream();
        if is_stalled {
            self.connection.retire();
            state.connections.retain(|connection| !connection.is_retired());
        }
        let undelivered = self.shared.serve(&mut state);
        drop(state);
        drop(undelivered);
    }
}
