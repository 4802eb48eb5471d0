//! The interface between calls and the network.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::{HeaderMap, Method, StatusCode};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;
use url::Url;

/// An HTTP request, usually a POST with a JSON body.
#[derive(Clone)]
pub struct HttpRequest {
    /// Method.
    pub method: Method,
    /// URL, with the query.
    pub url: Url,
    /// Headers, with the API key; `Debug` hides sensitive values.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Time of sending, set by the transport.
    pub sent: SendTime,
}

/// Time at which a request was passed to an open connection.
///
/// The latency of a request starts here. The wait for a connection, a stream or a TLS handshake is no property
/// of the model and does not count. Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct SendTime(Arc<OnceLock<Instant>>);

impl SendTime {
    /// Sets the time to now. Later calls have no effect.
    pub fn mark(&self) {
        let _ = self.0.set(Instant::now());
    }

    /// Returns the time, or `None` if the request has not been sent or its transport does not report it.
    pub fn get(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

/// Leaves out the query, which may contain a key.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(None);
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &url.as_str())
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// Status and headers of an HTTP response, and its body as a stream.
pub struct HttpResponse {
    /// Status.
    pub status: StatusCode,
    /// Headers; pace reads rate limits from them.
    pub headers: HeaderMap,
    /// Body. Dropping it before its end closes the connection.
    pub body: Body,
}

/// Chunks of a response body as they arrive.
pub type Body = BoxStream<'static, Result<Bytes, TransportError>>;

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Error of the network: the request got no complete response.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    kind: TransportErrorKind,
    message: String,
    /// Shared, so that the error can be cloned.
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Kind of a [`TransportError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The HTTP client could not be created.
    Setup,
    /// The host name could not be resolved.
    HostNotFound,
    /// No connection could be established.
    Connect,
    /// The certificate of the server is not trusted, or the TLS handshake failed.
    Certificate,
    /// The proxy is misconfigured, unreachable, or rejects the connection.
    Proxy,
    /// The server did not respond in time.
    Timeout,
    /// The connection failed before the response was complete.
    ConnectionLost,
}

impl TransportError {
    /// Creates an error. The message must not contain secrets, such as a URL with its query.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> TransportError {
        TransportError { kind, message: message.into(), source: None }
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> TransportError {
        TransportError { source: Some(Arc::new(source)), ..self }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> TransportErrorKind {
        self.kind
    }
}

/// Sender of HTTP requests. Tests implement it to run without a network.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends a request and waits for the status and headers of the response.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>>;
}
