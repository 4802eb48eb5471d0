//! The seam between calls and the network.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::{HeaderMap, Method, StatusCode};
use std::fmt;
use url::Url;

/// One request, usually a POST with a JSON body.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// With the key; sensitive values do not show in `Debug`.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Without the query, which may hold a key.
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

/// The beginning of an answer; its body is still to come.
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// What `pace` learns limits from.
    pub headers: HeaderMap,
    /// Dropping it gives the connection up.
    pub body: Body,
}

/// The pieces of an answer as they arrive.
pub type Body = BoxStream<'static, Result<Bytes, TransportError>>;

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The network failed; nothing is known of the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

/// Carries requests. Tests bring their own, so that they need no network.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends a request and waits for the head of the answer.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>>;
}
